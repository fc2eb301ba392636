//! Why a value was not sent, or none received.

use std::fmt;

/// A value that was not sent, with the reason.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError<T> {
    /// The channel is closed, or all receivers are gone.
    #[error("the channel is closed: all receivers are gone")]
    Closed(T),
    /// The channel has no room, and no receiver waits.
    #[error("the channel is full; `send` waits for room")]
    Full(T),
    /// The channel had no room in time.
    #[error("timed out: the channel stayed full")]
    Timeout(T),
    /// A worker of a scheduler must not block: the receiver might need it.
    #[error("a step must not block its worker; await `send`, or yield `sending`")]
    OnWorker(T),
}

impl<T> SendError<T> {
    /// Returns the value.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            Self::Closed(value)
            | Self::Full(value)
            | Self::Timeout(value)
            | Self::OnWorker(value) => value,
        }
    }
}

/// Does not show the value, which may have no `Debug`.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed(_) => "Closed(..)",
            Self::Full(_) => "Full(..)",
            Self::Timeout(_) => "Timeout(..)",
            Self::OnWorker(_) => "OnWorker(..)",
        })
    }
}

/// Why no value was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvError {
    /// The channel is closed, or all senders are gone, and all values have been received.
    #[error("the channel is closed, and all values have been received")]
    Closed,
    /// The buffer is empty, and no sender waits. In a closed channel, a value handed to another
    /// receiver may still come back.
    #[error("the channel is empty; `recv` waits for a value")]
    Empty,
    /// No value came in time.
    #[error("timed out: the channel stayed empty")]
    Timeout,
    /// A worker of a scheduler must not block: the sender might need it.
    #[error("a step must not block its worker; await `recv`, or yield `receiving`")]
    OnWorker,
}

/// Why a thread did not wait for a select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// No case was ready in time.
    #[error("timed out: no case of the select became ready")]
    Timeout,
    /// A worker of a scheduler must not block: another case's process might need it.
    #[error("a step must not block its worker; await the select, or yield it with `out.ask`")]
    OnWorker,
}
