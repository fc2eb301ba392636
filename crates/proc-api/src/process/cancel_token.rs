//! A view of whether a process has been asked to finish.

use super::ContextBackend;
use std::fmt;
use std::sync::Arc;

/// Shows whether a process has been asked to finish, or has ended. For threads and handlers that
/// work for the process.
///
/// Cloning it is cheap. A token keeps the scheduler's record of the process alive, but not the
/// process itself.
#[derive(Clone)]
pub struct CancelToken {
    backend: Arc<dyn ContextBackend>,
}

impl CancelToken {
    pub(crate) fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// Returns whether the process has been asked to finish, takes no further step, or has ended.
    /// Never blocks. Once `true`, the answer stays `true`.
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
