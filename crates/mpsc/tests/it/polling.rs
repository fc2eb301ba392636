//! A task that polls a receiver by hand.
#![allow(dead_code, reason = "each test file uses a part of it")]

use ganger_mpsc::{AsyncReceiver, RecvError};
use ganger_sync::Parker;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Sleeps on a thread, and counts its wake-ups.
pub(crate) struct Task {
    parker: Parker,
    wakes: AtomicUsize,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, because the test orders the wake-up before it reads the count.
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.parker.unpark();
    }
}

impl Task {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            parker: Parker::new(),
            wakes: AtomicUsize::new(0),
        })
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Arc::clone(self).into()
    }

    pub(crate) fn poll<T>(
        self: &Arc<Self>,
        receiver: &mut AsyncReceiver<T>,
    ) -> Poll<Result<T, RecvError>> {
        receiver.poll_recv(&mut Context::from_waker(&self.waker()))
    }

    /// Sleeps until woken; returns at once if woken since the last sleep. Under loom the model
    /// reports a lost wake-up as a deadlock.
    pub(crate) fn sleep(&self) {
        const LOST: Duration = Duration::from_secs(60);
        assert!(self.parker.park_timeout(LOST), "a wake-up was lost");
    }

    /// Polls and sleeps until an item or the end comes. Counts the sleeps.
    pub(crate) fn receive<T>(
        self: &Arc<Self>,
        receiver: &mut AsyncReceiver<T>,
        sleeps: &mut usize,
    ) -> Result<T, RecvError> {
        loop {
            if let Poll::Ready(received) = self.poll(receiver) {
                return received;
            }
            *sleeps += 1;
            self.sleep();
        }
    }

    /// Returns the number of wake-ups.
    pub(crate) fn wakes(&self) -> usize {
        // Ordering: Relaxed, because the test has ordered the wake-ups before.
        self.wakes.load(Ordering::Relaxed)
    }
}
