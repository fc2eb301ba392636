//! Helpers of the tests.

use ganger_sched::{ProcessHandle, ProcessState, Scheduler};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts wake-ups.
#[derive(Default)]
pub(crate) struct Counts(AtomicUsize);

impl Counts {
    pub(crate) fn waker() -> (Arc<Self>, Waker) {
        let counts = Arc::new(Self::default());
        (Arc::clone(&counts), Waker::from(counts))
    }

    pub(crate) fn get(&self) -> usize {
        // Ordering: Relaxed, because the tests wait for the threads that count.
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, because the tests wait for the threads that count.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls once.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_by(future, Waker::noop())
}

/// Polls once, with `waker`.
pub(crate) fn poll_by<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Starts a scheduler.
pub(crate) fn start(workers: usize) -> Scheduler {
    let scheduler = Scheduler::builder().workers(workers).build().unwrap();
    scheduler.start().unwrap();
    scheduler
}

/// Waits until the process is in `state`: its yields have been dispatched by then.
pub(crate) fn until(scheduler: &Scheduler, process: &ProcessHandle, state: ProcessState) {
    let now = || scheduler.process(process.pid()).map(|it| it.state);
    while now() != Some(state) {
        std::thread::yield_now();
    }
}
