//! Why a process is asked to finish, and how it ended.

use std::fmt;
use std::sync::Arc;

/// Why a process is asked to finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The scheduler is stopping.
    Shutdown,
    /// Another process, or code outside, cancelled the process for this reason.
    Requested(Arc<str>),
}

impl From<&str> for CancelReason {
    fn from(text: &str) -> Self {
        Self::Requested(text.into())
    }
}

impl From<String> for CancelReason {
    fn from(text: String) -> Self {
        Self::Requested(text.into())
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("the scheduler is stopping"),
            Self::Requested(reason) => f.write_str(reason),
        }
    }
}

/// How a process ended, as its monitors learn it.
///
/// Its result or its error goes to the owner of its handle alone. A cause can be cloned for many
/// monitors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitCause {
    /// The process finished by itself.
    Done,
    /// A step returned an error. The text is the error's, followed by the texts of its sources. The
    /// worker that ends the process makes the text before it sends any notice.
    Failed(Arc<str>),
    /// A step panicked, with this message.
    Panicked(Arc<str>),
    /// The process was cancelled for this reason, and did not say how it finishes.
    Cancelled(CancelReason),
    /// The process was terminated: by a call, or because a shutdown's deadline had passed.
    Terminated,
    /// The process asked to be replaced, and the replacement failed for this reason.
    UpgradeFailed(Arc<str>),
    /// No process had this PID when the monitor was set up: it had ended before, or never existed.
    NotFound,
    /// The connection to the process's node is lost, or there was none. The process may live on;
    /// later news of the process is ignored.
    NoConnection,
}

impl ExitCause {
    /// Returns whether the process finished by itself.
    #[must_use]
    pub fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Failed(error) => write!(f, "failed: {error}"),
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Cancelled(reason) => write!(f, "cancelled: {reason}"),
            Self::Terminated => f.write_str("terminated"),
            Self::UpgradeFailed(error) => write!(f, "upgrade failed: {error}"),
            Self::NotFound => f.write_str("no such process"),
            Self::NoConnection => f.write_str("no connection to its node"),
        }
    }
}

/// The way in which a process has ended, without the particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EndKind {
    /// Not known: the process is ending at this moment.
    #[default]
    Unknown,
    /// The process finished by itself.
    Done,
    /// A step returned an error.
    Failed,
    /// A step panicked.
    Panicked,
    /// It was cancelled.
    Cancelled,
    /// It was terminated.
    Terminated,
    /// The process asked to be replaced, and its replacement failed.
    UpgradeFailed,
    /// An exit signal ended it, of a linked process for instance.
    Exited,
}

impl EndKind {
    /// Returns the words that follow "the process has ended".
    pub(crate) fn note(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Done => ": it was done",
            Self::Failed => ": it failed",
            Self::Panicked => ": it panicked",
            Self::Cancelled => ": it was cancelled",
            Self::Terminated => ": it was terminated",
            Self::UpgradeFailed => ": its upgrade failed",
            Self::Exited => ": an exit signal ended it",
        }
    }
}
