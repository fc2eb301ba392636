//! Which messages a process takes.
//!
//! **Protocol.** The process says in its `init` which type it takes, if it takes one alone. A
//! sender looks before it pushes a message that it sends by PID, or by an address that promises no
//! type. A typed address promises the type, so its sender does not look.
//!
//! A process of another type may take the place of this one, and messages come before `init` has
//! said anything. So what is in the mailbox may be of another type, and the process looks, too.

use ganger_proc_api::{Kind, Message, SendErrorKind, TypePair};
use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::ptr;

/// The type of the messages that a process takes: null for all types.
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

    /// The only type.
    pub(crate) fn get(&self) -> Option<Kind> {
        // Ordering: Relaxed: see `set`.
        let kind = self.0.load(Ordering::Relaxed);
        // SAFETY: it is null, or `into_raw` has made it.
        unsafe { Kind::from_raw(kind) }
    }

    /// Why the message is refused, if it is.
    #[inline(always)]
    pub(crate) fn refuses(&self, message: &Message) -> Option<SendErrorKind> {
        self.get().and_then(|kind| refuses(kind, message))
    }
}

#[inline(never)]
fn refuses(kind: Kind, message: &Message) -> Option<SendErrorKind> {
    let payloads = &message.payloads;
    if payloads.fits(kind) {
        return None;
    }
    let pair = TypePair::new(kind, payloads.type_name());
    Some(SendErrorKind::WrongType(pair))
}
