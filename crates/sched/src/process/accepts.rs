//! Which messages a process takes.
//!
//! **Protocol.** The process says in its `init` which type it takes, if it takes one alone. A
//! sender looks before it pushes a message that it sends by PID, or by an address that promises no
//! type. A typed address promises the type, so its sender does not look.
//!
//! What the process has said is kept, and marked, while another one takes its place, or waits
//! before it begins. The `init` of that one says otherwise, or has said nothing when it is over: it
//! takes all types then.
//!
//! A process of another type may take the place of this one, and messages come before the first
//! `init` has said anything. So what is in the mailbox may be of another type, and the process
//! looks, too.

use ganger_proc_api::{Kind, Message, SendErrorKind, TypePair};
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::ptr;

/// The process before this one has said so.
const KEPT: usize = 1;

/// The type of the messages that a process takes: null for all types. The mark is in the lowest
/// bit.
pub(crate) struct Accepts(AtomicPtr<()>);

impl Accepts {
    /// No type in particular.
    pub(crate) fn anything() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// From now on, that type alone, or all types.
    pub(crate) fn set(&self, kind: Option<Kind>) {
        let kind = kind.map_or(ptr::null_mut(), Kind::into_raw);
        // Ordering: Relaxed, because what it points to never changes. A sender that sees the old
        // kind pushes a message that the process looks at itself.
        self.0.store(kind, Ordering::Relaxed);
    }

    /// Another process takes the place of the one that has said so. For the owner of the run token.
    pub(crate) fn keep(&self) {
        // Ordering: Relaxed: see `set`.
        let kind = self.0.load(Ordering::Relaxed);
        if !kind.is_null() {
            let marked = kind.map_addr(|it| it | KEPT);
            // Ordering: Relaxed: see `set`.
            self.0.store(marked, Ordering::Relaxed);
        }
    }

    /// That process has begun: it takes all types, unless it has said otherwise. For the owner of
    /// the run token.
    pub(crate) fn settle(&self) {
        if self.kind().1 {
            self.set(None);
        }
    }

    /// The only type.
    pub(crate) fn get(&self) -> Option<Kind> {
        self.kind().0
    }

    /// The only type, and whether the process before this one has said so.
    pub(crate) fn kind(&self) -> (Option<Kind>, bool) {
        // Ordering: Relaxed: see `set`.
        let word = self.0.load(Ordering::Relaxed);
        let kind = word.map_addr(|it| it & !KEPT);
        // SAFETY: it is null, or `into_raw` has made it, but for the bit that is taken off.
        (unsafe { Kind::from_raw(kind) }, word.addr() & KEPT != 0)
    }

    /// Why the message is refused, if it is.
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
