//! The state shared by the senders and the receiver of a channel.

use crate::queue::Queue;
use ganger_sync::Parker;
use ganger_sync::atomic::AtomicUsize;
use ganger_sync::sync::Arc;
#[cfg(feature = "async")]
use ganger_sync::sync::{Mutex, lock};
#[cfg(feature = "async")]
use std::task::Waker;
use std::time::Duration;

/// The shared half of a channel.
pub(super) struct Shared<T> {
    /// Senders push and seal; the receiver drains, parks and closes.
    pub(super) queue: Queue<T>,
    /// The receiver sleeps here. The thread with the queue's token wakes it.
    parker: Parker,
    /// The task that waits for an item. The receiver writes it before it parks. The thread with the
    /// queue's token takes it.
    #[cfg(feature = "async")]
    waker: Mutex<Option<Waker>>,
    /// The number of senders. Senders change it; the sender that takes it to zero reads it.
    pub(super) senders: AtomicUsize,
}

impl<T> Shared<T> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            parker: Parker::new(),
            #[cfg(feature = "async")]
            waker: Mutex::new(None),
            senders: AtomicUsize::new(1),
        })
    }

    /// Wakes the receiver. The caller has the queue's token.
    #[cold]
    pub(super) fn wake(&self) {
        self.parker.unpark();
        #[cfg(feature = "async")]
        {
            // A waker is foreign code: it runs without the lock.
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Blocks the receiver until it is woken, or until `timeout` has passed.
    pub(super) fn sleep(&self, timeout: Option<Duration>) {
        match timeout {
            None => self.parker.park(),
            Some(timeout) => {
                self.parker.park_timeout(timeout);
            }
        }
    }

    /// Sets the waker of the task that waits instead of the thread.
    #[cfg(feature = "async")]
    pub(super) fn set_waker(&self, waker: &Waker) {
        let is_there = |old: &Waker| old.will_wake(waker);
        if lock(&self.waker).as_ref().is_some_and(is_there) {
            return;
        }
        // A waker is foreign code: the new waker is cloned, and the old waker dropped, without the
        // lock.
        let new = waker.clone();
        let _old = lock(&self.waker).replace(new);
    }

    /// Drops the waker: no task waits.
    #[cfg(feature = "async")]
    pub(super) fn forget_waker(&self) {
        let _old = lock(&self.waker).take();
    }
}
