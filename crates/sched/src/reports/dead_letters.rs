//! Messages that no process takes and no sender gets back.

use ganger_proc_api::{Instant, Pid, SendErrorKind, Symbol};

/// Is told of each message that no process takes and no sender gets back: see
/// [`Builder::dead_letters`](crate::Builder::dead_letters).
///
/// The thread that finds the message calls it, contained: mostly the worker that ends the process.
/// So it should be short. A send that is refused gives its message back, which is no dead letter.
pub trait DeadLetters: Send + Sync + 'static {
    /// A message is dropped.
    fn dead_letter(&self, letter: &DeadLetter);
}

/// A message that is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Why it is dropped.
    pub reason: DeadReason,
    /// The process that has sent it, if it is known.
    pub source: Option<Pid>,
    /// The process that was to get it.
    pub target: Pid,
    /// What it is about.
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
    /// It was refused when it was due to be sent: its process had ended.
    LateEnded,
    /// It was refused when it was due to be sent: the mailbox was full.
    LateFull,
    /// It was refused when it was due to be sent, for another reason.
    LateRefused,
}

impl DeadReason {
    /// The reason for a message that was refused when it was due to be sent.
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
    /// A message that is dropped.
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
