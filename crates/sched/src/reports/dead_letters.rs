//! Messages that no process takes and no sender gets back.

use ganger_proc_api::{Instant, Message, Pid, SendErrorKind, Symbol};

/// A sink, notified of each message that no process takes and no sender gets back: see
/// [`Builder::dead_letters`](crate::Builder::dead_letters).
///
/// The thread that finds the message calls it, contained: mostly the worker that ends the process.
/// So it should be short. A refused send returns its message, which is no dead letter.
pub trait DeadLetters: Send + Sync + 'static {
    /// Reports a dropped message.
    fn dead_letter(&self, letter: &DeadLetter);

    /// Reports a dropped message to a sink that looks into it: by default as
    /// [`dead_letter`](Self::dead_letter). The message ends after the call.
    fn dead_message(&self, letter: &DeadLetter, message: &Message) {
        let _ = message;
        self.dead_letter(letter);
    }
}

/// A dropped message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Why it is dropped.
    pub reason: DeadReason,
    /// The sending process, if known.
    pub source: Option<Pid>,
    /// The intended process.
    pub target: Pid,
    /// The topic of the message.
    pub topic: Symbol,
    /// When it is dropped, to about ten milliseconds.
    pub at: Instant,
}

/// Why a message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeadReason {
    /// Its process has ended, or was not started after all, and no step had taken it.
    Ended,
    /// The message was refused when its time came: its process had ended.
    LateEnded,
    /// The message was refused when its time came: the mailbox was full.
    LateFull,
    /// The message was refused when its time came, for another reason.
    LateRefused,
}

impl DeadReason {
    /// Returns the reason for a message refused when its time came.
    #[must_use]
    pub fn of_late(kind: &SendErrorKind) -> Self {
        match kind {
            SendErrorKind::NotFound | SendErrorKind::Ended(_) | SendErrorKind::Closed => {
                Self::LateEnded
            }
            SendErrorKind::Full => Self::LateFull,
            _ => Self::LateRefused,
        }
    }
}

impl DeadLetter {
    /// Makes the letter of a dropped message.
    #[must_use]
    pub fn new(
        reason: DeadReason,
        source: Option<Pid>,
        target: Pid,
        topic: Symbol,
        at: Instant,
    ) -> Self {
        Self {
            reason,
            source,
            target,
            topic,
            at,
        }
    }
}
