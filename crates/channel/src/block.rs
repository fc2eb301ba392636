//! A thread that waits for a future.

use ganger_sync::Parker;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

struct ThreadWaker(Parker);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the future is ready, or the time is over.
pub(crate) fn block_on<F: Future + Unpin>(
    future: &mut F,
    timeout: Option<Duration>,
) -> Option<F::Output> {
    let thread = Arc::new(ThreadWaker(Parker::new()));
    let waker = Waker::from(Arc::clone(&thread));
    let mut context = Context::from_waker(&waker);
    let deadline = timeout.and_then(|it| Instant::now().checked_add(it));
    loop {
        if let Poll::Ready(output) = Pin::new(&mut *future).poll(&mut context) {
            return Some(output);
        }
        match deadline {
            None => thread.0.park(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                thread.0.park_timeout(left);
            }
        }
    }
}
