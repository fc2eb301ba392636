//! Why a process is asked to finish.

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
