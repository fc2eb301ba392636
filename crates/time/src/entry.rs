//! The actions of timers when they are due.

use ganger_proc_api::{Completer, EndWatch, Envelope, Instant, Pid};
use std::any::Any;
use std::sync::Arc;

/// Code for a timer to call, without a lock.
pub trait OnTime: Send + Sync {
    /// Hears that the timer is due.
    fn fire(self: Arc<Self>);

    /// Hears that the scheduler has halted before the timer was due.
    fn halt(self: Arc<Self>) {}
}

/// The action of a timer.
pub(crate) enum Entry {
    /// A yield completes. The scheduler tells when the yield is unwanted.
    Complete(Completer),
    /// A yield completes. Its watch takes the timer away when the yield is unwanted.
    Watched(Box<(Completer, Option<EndWatch>)>),
    /// A message is sent.
    Send(Box<Message>),
    /// A message with its cause is sent. So messages without a cause have no place for a cause.
    SendCaused(Box<(Box<Message>, Arc<dyn Any + Send + Sync>)>),
    /// A call is made.
    Call(Arc<dyn OnTime>),
}

/// A message to be sent later. A caller can take it back until a step is shown it.
pub(crate) struct Message {
    pub(crate) envelope: Envelope,
    pub(crate) at: Instant,
    pub(crate) number: Number,
}

/// The shard's number of a message: from 1 up, never used twice.
pub(crate) type Number = u64;

/// The action of a due timer.
pub(crate) enum Due {
    Complete(Completer),
    Call(Arc<dyn OnTime>),
    /// The shard keeps the message until its process is about to be shown it.
    Send(Number, Pid),
    SendCaused(Number, Pid, Arc<dyn Any + Send + Sync>),
}

impl Entry {
    /// Ends the entry after the scheduler's halt.
    pub(crate) fn halt(self) {
        if let Self::Call(call) = self {
            call.halt();
        }
    }

    /// Forgets the entry, which its process does not want any longer.
    pub(crate) fn forget(self) {
        if let Self::Complete(completer) = self {
            completer.forget();
        }
    }
}
