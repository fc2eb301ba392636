//! A place where some meet: none goes on before all are there.

use crate::blocking::block_on;
use crate::seat::Seat;
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::WaitQueue;
use ganger_wait::watch::Thing;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A place where a number of processes, tasks or threads meet, again and again. A dropped wait does
/// not count.
///
/// ```
/// use ganger_lock::Barrier;
///
/// let barrier = Barrier::new(2);
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| barrier.wait_blocking());
///     let leads = barrier.wait_blocking();
///     assert_ne!(leads, other.join().unwrap(), "one of them leads");
/// });
/// ```
pub struct Barrier {
    size: usize,
    queue: Mutex<WaitQueue<()>>,
}

impl Barrier {
    /// Creates a barrier at which `size` parties meet.
    #[must_use]
    pub fn new(size: usize) -> Self {
        Self {
            size,
            queue: Mutex::new(WaitQueue::new()),
        }
    }

    /// Waits until all are there. Returns `true` to the last arrival.
    pub fn wait(&self) -> BarrierWait<&Self> {
        BarrierWait {
            barrier: self,
            seat: None,
        }
    }

    /// Waits as [`wait`](Self::wait) does; the wait keeps the barrier alive.
    pub fn wait_owned(self: Arc<Self>) -> BarrierWait<Arc<Self>> {
        BarrierWait {
            barrier: self,
            seat: None,
        }
    }

    /// Blocks this thread until all are there. Not for steps.
    pub fn wait_blocking(&self) -> bool {
        block_on("a barrier", "`wait`", self.wait())
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("size", &self.size)
            .field("waiting", &lock(&self.queue).len())
            .finish()
    }
}

/// Waits at a [`Barrier`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct BarrierWait<B: Deref<Target = Barrier>> {
    barrier: B,
    seat: Option<Seat>,
}

impl<B: Deref<Target = Barrier>> Unpin for BarrierWait<B> {}

impl<B: Deref<Target = Barrier>> Future for BarrierWait<B> {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let this = self.get_mut();
        if this.seat.is_none() {
            let mut queue = lock(&this.barrier.queue);
            if queue.len() + 1 >= this.barrier.size {
                let all = queue.take_all(None);
                drop(queue);
                drop(all);
                return Poll::Ready(true);
            }
            this.seat = Some(Seat::back(
                &mut queue,
                0,
                (),
                Thing::of("barrier", &*this.barrier),
            ));
        }
        match &this.seat {
            Some(seat) if seat.poll(context).is_pending() => Poll::Pending,
            _ => {
                this.seat = None;
                Poll::Ready(false)
            }
        }
    }
}

impl<B: Deref<Target = Barrier>> Drop for BarrierWait<B> {
    fn drop(&mut self) {
        if let Some(seat) = &self.seat {
            let _told_or_not = seat.leave(&mut lock(&self.barrier.queue));
        }
    }
}

impl<B: Deref<Target = Barrier>> fmt::Debug for BarrierWait<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWait").finish_non_exhaustive()
    }
}
