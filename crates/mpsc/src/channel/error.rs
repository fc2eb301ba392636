//! The errors of channels, with the names and the behaviour of `std::sync::mpsc`. An error of a
//! send contains the rejected item.

use std::error::Error;
use std::fmt;

/// Implements an error's texts.
macro_rules! texts {
    ($error:ident $(<$item:ident>)?: $($kind:pat => $text:literal),+) => {
        impl $(<$item>)? fmt::Display for $error $(<$item>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($kind => $text),+
                })
            }
        }

        impl $(<$item>)? Error for $error $(<$item>)? {}
    };
}

texts!(SendError<T>: Self(_) => "sending on a closed channel");
texts!(TrySendError<T>:
    Self::Full(_) => "sending on a full channel",
    Self::Disconnected(_) => "sending on a closed channel");
texts!(SendTimeoutError<T>:
    Self::Timeout(_) => "timed out waiting for room in a channel",
    Self::Disconnected(_) => "sending on a closed channel");
texts!(RecvError: Self => "receiving on a closed channel");
texts!(TryRecvError:
    Self::Empty => "receiving on an empty channel",
    Self::Disconnected => "receiving on a closed channel");
texts!(RecvTimeoutError:
    Self::Timeout => "timed out waiting on a channel",
    Self::Disconnected => "receiving on a closed channel");

/// The receiver is gone or has closed the channel. Contains the rejected item or items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> SendError<T> {
    /// Returns the rejected item or items.
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
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// The channel has no room for the item at this moment.
    Full(T),
    /// The receiver is gone or has closed the channel.
    Disconnected(T),
}

impl<T> TrySendError<T> {
    /// Returns the rejected item.
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

/// Why [`BoundedSender::send_timeout`](crate::BoundedSender::send_timeout) has not sent the item,
/// which is inside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// The channel had no room for the item in time.
    Timeout(T),
    /// The receiver is gone or has closed the channel.
    Disconnected(T),
}

impl<T> SendTimeoutError<T> {
    /// Returns the rejected item.
    #[must_use]
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(item) | Self::Disconnected(item) => item,
        }
    }
}

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(SendError(item): SendError<T>) -> Self {
        Self::Disconnected(item)
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}

/// The channel is empty, and no item will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecvError;

/// Why [`Receiver::try_recv`](crate::Receiver::try_recv) has no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryRecvError {
    /// The channel is empty, but items may come.
    Empty,
    /// The channel is empty, and no item will come.
    Disconnected,
}

impl From<RecvError> for TryRecvError {
    fn from(RecvError: RecvError) -> Self {
        Self::Disconnected
    }
}

/// Why [`Receiver::recv_timeout`](crate::Receiver::recv_timeout) has no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// No item came in time.
    Timeout,
    /// The channel is empty, and no item will come.
    Disconnected,
}

impl From<RecvError> for RecvTimeoutError {
    fn from(RecvError: RecvError) -> Self {
        Self::Disconnected
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    struct NoDebug;

    #[test]
    fn an_error_needs_nothing_of_what_it_holds() {
        let error: Box<dyn std::error::Error> = Box::new(SendError(NoDebug));
        assert_eq!(error.to_string(), "sending on a closed channel");
        assert_eq!(format!("{error:?}"), "SendError { .. }");
    }

    #[test]
    fn each_error_says_what_was_tried_and_why_not() {
        let errors: [(Box<dyn Error>, &str); 6] = [
            (
                Box::new(TrySendError::Full(NoDebug)),
                "sending on a full channel",
            ),
            (
                Box::new(TrySendError::Disconnected(NoDebug)),
                "sending on a closed channel",
            ),
            (Box::new(RecvError), "receiving on a closed channel"),
            (
                Box::new(TryRecvError::Empty),
                "receiving on an empty channel",
            ),
            (
                Box::new(RecvTimeoutError::Timeout),
                "timed out waiting on a channel",
            ),
            (
                Box::new(RecvTimeoutError::from(RecvError)),
                "receiving on a closed channel",
            ),
        ];
        for (error, text) in errors {
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(
            TryRecvError::from(RecvError).to_string(),
            RecvError.to_string()
        );
    }
}
