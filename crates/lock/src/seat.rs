//! A wait in a single queue.

use ganger_wait::watch::{self, Thing};
use ganger_wait::{Left, WaitQueue, Waiter, WaiterKey};
use std::sync::Arc;
use std::task::{Context, Poll};

/// A waiter in a queue. Its owner calls [`leave`](Self::leave) with the lock of the
/// queue when the wait is dropped before it is ready.
pub(crate) struct Seat {
    waiter: Arc<Waiter>,
    key: WaiterKey,
    _registered: watch::Registered,
}

impl Seat {
    /// Takes a seat at the end of the queue, to wait for `thing`.
    pub(crate) fn back<T>(queue: &mut WaitQueue<T>, case: u32, item: T, thing: Thing) -> Self {
        let waiter = Arc::new(Waiter::new());
        let key = queue.push_back(Arc::clone(&waiter), case, item);
        Self {
            waiter,
            key,
            _registered: watch::wait(|| thing),
        }
    }

    /// Returns the case as which the waiter was claimed. Call this without the lock.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<u32> {
        self.waiter.poll(context.waker())
    }

    /// Leaves the queue, under its lock.
    pub(crate) fn leave<T>(&self, queue: &mut WaitQueue<T>) -> Left {
        let left = self.waiter.leave();
        let entry = queue.remove(self.key);
        debug_assert!(entry.is_none() || left == Left::InTime);
        left
    }
}
