//! The errors of channels, with the names and the behaviour of those of `std::sync::mpsc`. An error
//! of a send has the rejected item inside.

use std::fmt;
use thiserror::Error;

/// The receiver is gone or has closed the channel. What was to be sent is inside.
#[derive(Error, Clone, Copy, PartialEq, Eq)]
#[error("sending on a closed channel")]
pub struct SendError<T>(pub T);

impl<T> SendError<T> {
    /// What was to be sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

/// Why [`BoundedSender::try_send`](crate::BoundedSender::try_send) has not sent the item, which is
/// inside.
#[derive(Error, Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room for the item at this moment.
    #[error("sending on a full channel")]
    Full(T),
    /// The receiver is gone or has closed the channel.
    #[error("sending on a closed channel")]
    Disconnected(T),
}

impl<T> TrySendError<T> {
    /// What was to be sent.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(item) | Self::Disconnected(item) => item,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(item): SendError<T>) -> Self {
        Self::Disconnected(item)
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}

/// Nothing is left in the channel, and nothing comes any more.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
#[error("receiving on a closed channel")]
pub struct RecvError;

/// Why [`Receiver::try_recv`](crate::Receiver::try_recv) has no item.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// There is no item yet.
    #[error("receiving on an empty channel")]
    Empty,
    /// Nothing is left, and nothing comes any more.
    #[error("receiving on a closed channel")]
    Disconnected,
}

impl From<RecvError> for TryRecvError {
    fn from(RecvError: RecvError) -> Self {
        Self::Disconnected
    }
}

/// Why [`Receiver::recv_timeout`](crate::Receiver::recv_timeout) has no item.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// No item came in time.
    #[error("timed out waiting on a channel")]
    Timeout,
    /// Nothing is left, and nothing comes any more.
    #[error("receiving on a closed channel")]
    Disconnected,
}

impl From<RecvError> for RecvTimeoutError {
    fn from(RecvError: RecvError) -> Self {
        Self::Disconnected
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    struct NoDebug;

    #[test]
    fn an_error_needs_nothing_of_what_it_holds() {
        let error: Box<dyn std::error::Error> = Box::new(SendError(NoDebug));
        assert_eq!(error.to_string(), "sending on a closed channel");
        assert_eq!(format!("{error:?}"), "SendError { .. }");
    }
}
