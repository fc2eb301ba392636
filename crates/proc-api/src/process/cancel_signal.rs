//! Waiting, anywhere, until a process is asked to finish.

use super::ContextBackend;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

/// Waits until a process is asked to finish: see
/// [`Context::cancel_signal`](super::Context::cancel_signal).
///
/// Ready as soon as the process has been asked to finish, by a cancellation or by a stop of the
/// scheduler, and at the latest when the process has ended. A ready signal stays ready.
///
/// A future for other code: any executor may poll it, on any thread. Each clone waits for itself. A
/// signal keeps the scheduler's record of the process alive, but not the process itself.
#[must_use = "a future does nothing unless it is awaited"]
pub struct CancelSignal {
    backend: Arc<dyn ContextBackend>,
    /// The key of the signal's waker, while the backend keeps the waker.
    key: Option<u64>,
}

impl CancelSignal {
    pub(crate) fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend, key: None }
    }
}

impl Future for CancelSignal {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.key = this.backend.watch_cancel(this.key, context.waker());
        match this.key {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        }
    }
}

impl Drop for CancelSignal {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.backend.unwatch_cancel(key);
        }
    }
}

impl Clone for CancelSignal {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.backend))
    }
}

impl fmt::Debug for CancelSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelSignal")
            .field("pid", &self.backend.pid())
            .finish_non_exhaustive()
    }
}
