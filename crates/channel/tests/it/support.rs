//! Futures that are polled by hand, and wakers that count.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it is woken.
#[derive(Default)]
pub struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Ordering: SeqCst, as one thread reads it at a time.
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    pub fn new() -> (Arc<Self>, Waker) {
        let bell = Arc::new(Self::default());
        (Arc::clone(&bell), Waker::from(bell))
    }

    pub fn rung(&self) -> usize {
        // Ordering: SeqCst, as in `wake`.
        self.0.load(Ordering::SeqCst)
    }
}

/// Polls once.
pub fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls once, to see whether it is ready.
pub fn now<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll(future, Waker::noop())
}
