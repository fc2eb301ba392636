//! The types of the messages taken by a process.
//!
//! **Protocol.** The process states in its `init` the type of its messages, if it takes only one
//! type. A sender checks a message before the push if it sends by PID, or by an address without a
//! promised type. A typed address promises the type, so its sender does not check.
//!
//! The statement is kept, and marked, while another process takes the place, or waits before it
//! begins. The `init` of the new process makes its own statement, or has made none when it is over:
//! it takes all types then.
//!
//! A process of another type may take the place, and messages come before the first statement. So
//! messages in the mailbox may be of another type, and the process checks, too.

use ganger_proc_api::{Kind, Message, SendErrorKind, TypePair};
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::ptr;

/// The mark of a predecessor's statement.
const KEPT: usize = 1;

/// The type of the messages that a process takes: null for all types. The lowest bit is the mark.
pub(crate) struct Accepts(AtomicPtr<()>);

impl Accepts {
    /// Creates the promise of no type in particular.
    pub(crate) fn anything() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Sets the only type from now on, or all types.
    pub(crate) fn set(&self, kind: Option<Kind>) {
        let kind = kind.map_or(ptr::null_mut(), Kind::into_raw);
        // Ordering: Relaxed, because the target of the pointer never changes. When a sender sees
        // the old kind and pushes a message, the process checks the message itself.
        self.0.store(kind, Ordering::Relaxed);
    }

    /// Marks the statement of a process whose place another takes. For the owner of the run token.
    pub(crate) fn keep(&self) {
        // Ordering: Relaxed: see `set`.
        let kind = self.0.load(Ordering::Relaxed);
        if !kind.is_null() {
            let marked = kind.map_addr(|it| it | KEPT);
            // Ordering: Relaxed: see `set`.
            self.0.store(marked, Ordering::Relaxed);
        }
    }

    /// Settles the types of a process that has begun: all types, unless it has stated a type. For
    /// the owner of the run token.
    pub(crate) fn settle(&self) {
        if self.kind().1 {
            self.set(None);
        }
    }

    /// Returns the only type of messages that the process takes, if any.
    pub(crate) fn get(&self) -> Option<Kind> {
        self.kind().0
    }

    /// Returns the only type, and whether a predecessor stated it.
    pub(crate) fn kind(&self) -> (Option<Kind>, bool) {
        // Ordering: Relaxed: see `set`.
        let word = self.0.load(Ordering::Relaxed);
        let kind = word.map_addr(|it| it & !KEPT);
        // SAFETY: the pointer, without the mark, is null, or comes from `into_raw`.
        (unsafe { Kind::from_raw(kind) }, word.addr() & KEPT != 0)
    }

    /// Returns why the message is refused, if it is.
    #[inline(always)]
    pub(crate) fn refuses(&self, message: &Message) -> Option<SendErrorKind> {
        let (kind, is_kept) = self.kind();
        kind.and_then(|kind| refuses(kind, is_kept, message))
    }
}

#[inline(never)]
fn refuses(kind: Kind, is_kept: bool, message: &Message) -> Option<SendErrorKind> {
    let payloads = &message.payloads;
    if payloads.fits(kind) {
        return None;
    }
    let pair = TypePair::new(kind, payloads.type_name());
    let pair = if is_kept { pair.restarting() } else { pair };
    Some(SendErrorKind::WrongType(pair))
}
