//! A send that waits for room, as the future of a task without a scheduler.

use crate::notes::Number;
use ganger_proc_api::SendError;
use ganger_sched::SendAsync;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// A waiting send.
pub(crate) struct Waiting {
    pub(crate) number: Number,
    send: SendAsync,
    woken: Arc<Woken>,
}

/// Whether the waker has been called since the last look.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: Release pairs with the Acquire in `take_wake`: the poll after the wake-up
        // sees its reason.
        self.0.store(true, Ordering::Release);
    }
}

impl Waiting {
    pub(crate) fn new(number: Number, send: SendAsync) -> Self {
        let woken = Arc::default();
        Self {
            number,
            send,
            woken,
        }
    }

    pub(crate) fn poll(&mut self) -> Poll<Result<(), SendError>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        Pin::new(&mut self.send).poll(&mut Context::from_waker(&waker))
    }

    /// Returns whether the waker has been called since the last look.
    pub(crate) fn take_wake(&self) -> bool {
        // Ordering: Acquire pairs with the Release in the waker.
        self.woken.0.swap(false, Ordering::Acquire)
    }
}
