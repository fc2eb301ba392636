//! How many items a bounded channel has room for, and the senders that wait for room.
//!
//! **Problem.** A sender that finds no room sleeps until a receive makes some. Sends and receives
//! that need not wait should pay for a counter, and nothing else.
//!
//! **Rejected.** A count of what is in the queue: it would have to be read after every push. A lock
//! around the count: every send and every receive would take it.
//!
//! **Protocol.** `free` counts places. A sender takes one before it pushes; the receiver gives it
//! back when it has taken the item.
//! 1. *Waiter*: take the lock; count itself in `waiting`; full fence; look for a place, or for the
//!    end, once more; wait for the signal, and look again.
//! 2. *Giver*: give the places; full fence; if `waiting` is not zero, take the lock and signal.
//!
//! **Proof sketch.** One of the two fences comes first. If it is the giver's, the waiter sees the
//! place. If it is the waiter's, the giver sees that a sender waits, and signals after it has had
//! the lock, so not between the waiter's look and its wait. It is the same for the end.

use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::sync::{Condvar, Mutex, lock};
use std::sync::PoisonError;

/// The room of one channel.
pub(super) struct Room {
    /// Places for items. Senders take them, the receiver gives them back.
    free: AtomicUsize,
    /// How many senders wait. Senders change it under the lock; the receiver reads it without.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    signal: Condvar,
}

impl Room {
    pub(super) fn new(places: usize) -> Self {
        Self {
            free: AtomicUsize::new(places),
            waiting: AtomicUsize::new(0),
            lock: Mutex::new(()),
            signal: Condvar::new(),
        }
    }

    /// Takes a place if there is one.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        // Ordering: Relaxed, because the exchange decides.
        let mut free = self.free.load(Ordering::Relaxed);
        while free > 0 {
            // Ordering: Acquire pairs with the Release in `give`: what the receiver did before it
            // gave the place happens before. Relaxed on failure, because the next exchange decides.
            match self.free.compare_exchange_weak(
                free,
                free - 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        false
    }

    /// Takes a place, and blocks until there is one or `is_over` holds. Says whether it took one.
    pub(super) fn take(&self, is_over: impl Fn() -> bool) -> bool {
        if self.try_take() {
            return true;
        }
        let mut guard = lock(&self.lock);
        // Ordering: Relaxed, because the fence orders it before the look for a place.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // Ordering: SeqCst pairs with the fence in `give` and `wake_all`.
        fence(Ordering::SeqCst);
        let taken = loop {
            if self.try_take() {
                break true;
            }
            if is_over() {
                break false;
            }
            guard = self
                .signal
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        };
        // Ordering: Relaxed, because a giver that still sees it signals in vain.
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(guard);
        taken
    }

    /// How many places there are at this moment.
    pub(super) fn free(&self) -> usize {
        // Ordering: Relaxed, because it is for display.
        self.free.load(Ordering::Relaxed)
    }

    /// Gives places back.
    #[inline]
    pub(super) fn give(&self, places: usize) {
        // Ordering: Release pairs with the Acquire in `try_take`.
        self.free.fetch_add(places, Ordering::Release);
        // Ordering: SeqCst pairs with the fence in `take`.
        fence(Ordering::SeqCst);
        // Ordering: Relaxed, because the fence orders it behind the giving.
        match self.waiting.load(Ordering::Relaxed) {
            0 => {}
            _ => self.signal(places > 1),
        }
    }

    /// Wakes all senders that wait, so that they look whether it is over.
    pub(super) fn wake_all(&self) {
        // Ordering: SeqCst pairs with the fence in `take`.
        fence(Ordering::SeqCst);
        self.signal(true);
    }

    #[cold]
    fn signal(&self, all: bool) {
        drop(lock(&self.lock));
        if all {
            self.signal.notify_all();
        } else {
            self.signal.notify_one();
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_sender_counts_while_it_waits() {
        let room = Room::new(0);
        // Ordering: Relaxed, because the loop reads it again until it is so.
        let waiting = || room.waiting.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let waiters = [(); 2].map(|()| scope.spawn(|| room.take(|| false)));
            for left in [2, 1] {
                while waiting() != left {
                    thread::yield_now();
                }
                room.give(1);
            }
            assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
        });
        assert_eq!((waiting(), room.free()), (0, 0));
    }
}
