//! Asking a process to finish.

use crate::ContextBackend;
use std::fmt;
use std::sync::Arc;

/// Why a process is asked to finish.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// The scheduler is stopping.
    Shutdown,
    /// Somebody cancelled the process, for this reason.
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

/// Shows whether a process has been asked to finish, or has ended; for threads and handlers that work for it.
///
/// Cloning it is cheap; it keeps a few bytes of the process alive, not the process.
#[derive(Clone)]
pub struct CancelToken {
    backend: Arc<dyn ContextBackend>,
}

impl CancelToken {
    pub(crate) fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// Whether the process has been asked to finish, is to take no further step, or has ended. Never blocks; once `true`,
    /// always `true`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.backend.is_cancelled()
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken")
            .field("pid", &self.backend.pid())
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}
