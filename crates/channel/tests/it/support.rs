//! Futures polled by hand, and counting wakers.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Counts its wake-ups.
#[derive(Default)]
pub struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Ordering: SeqCst, because a single thread reads the count at a time.
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

/// Polls once, with an empty waker.
pub fn now<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll(future, Waker::noop())
}

/// A waker: makes a user's call when cloned, woken and dropped.
pub struct Calls(Box<dyn Fn() + Send + Sync>);

impl Calls {
    pub fn waker(call: impl Fn() + Send + Sync + 'static) -> Waker {
        let this = Arc::into_raw(Arc::new(Self(Box::new(call))));
        // SAFETY: the functions of the table take such pointers, and keep the count.
        unsafe { Waker::from_raw(RawWaker::new(this.cast(), &CALLS)) }
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        (self.0)();
    }
}

static CALLS: RawWakerVTable = RawWakerVTable::new(
    |this| {
        let this: *const Calls = this.cast();
        // SAFETY: the waker is borrowed, and owns the `Arc`.
        unsafe {
            ((*this).0)();
            Arc::increment_strong_count(this);
        }
        RawWaker::new(this.cast(), &CALLS)
    },
    |this| {
        // SAFETY: the waker gives its `Arc` up.
        let this = unsafe { Arc::from_raw(this.cast::<Calls>()) };
        (this.0)();
    },
    // SAFETY: the waker is borrowed, and owns the `Arc`.
    |this| unsafe { ((*this.cast::<Calls>()).0)() },
    |this| {
        // SAFETY: the waker gives its `Arc` up.
        let this = unsafe { Arc::from_raw(this.cast::<Calls>()) };
        (this.0)();
    },
);

/// Runs `body`, and fails if it hangs.
pub fn does_not_hang(body: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    let runs = thread::spawn(move || {
        body();
        sender.send(()).unwrap();
    });
    let ended = receiver.recv_timeout(Duration::from_secs(30));
    assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
    runs.join().unwrap();
}
