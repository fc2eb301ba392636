//! A count that can be waited for: of places, of threads.

use crate::clock::Deadline;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A count that can be waited for. Changing it is one RMW, unless somebody waits.
#[derive(Default)]
pub(crate) struct Gauge {
    count: CachePadded<AtomicUsize>,
    waiters: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Gauge {
    pub(crate) fn enter(&self) {
        // Ordering: SeqCst, one order with `leave` and `wait`.
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Enters unless `limit` have entered already: exact under any concurrency.
    #[must_use]
    pub(crate) fn enter_below(&self, limit: usize) -> bool {
        let add_one = |count: usize| (count < limit).then_some(count + 1);
        // Ordering: AcqRel: as a lock would, so that the process that took the place sees the end
        // of the one that left it.
        self.count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, add_one)
            .is_ok()
    }

    pub(crate) fn leave(&self) {
        // Ordering: SeqCst: leave, then read `waiters`; `wait` announces itself, then reads the
        // count. One of the two sees the other.
        self.count.fetch_sub(1, Ordering::SeqCst);
        // Ordering: SeqCst, as above.
        if self.waiters.load(Ordering::SeqCst) > 0 {
            self.poke();
        }
    }

    /// The count.
    pub(crate) fn get(&self) -> usize {
        // Ordering: SeqCst, as in `enter`.
        self.count.load(Ordering::SeqCst)
    }

    /// Lets those who wait look at their target and deadline again.
    pub(crate) fn poke(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Blocks until at most `target` are left, or the deadline has passed. Returns whether they are.
    ///
    /// Both may change meanwhile; [`poke`](Self::poke) says so.
    pub(crate) fn wait(&self, target: impl Fn() -> usize, deadline: impl Fn() -> Deadline) -> bool {
        // Ordering: SeqCst pairs with `leave`.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let reached = loop {
            // Ordering: SeqCst pairs with `leave`.
            if self.count.load(Ordering::SeqCst) <= target() {
                break true;
            }
            let left = deadline().remaining();
            if left == Duration::ZERO {
                break false;
            }
            let waited = self.changed.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(guard);
        // Ordering: Relaxed: one signal too many does no harm.
        self.waiters.fetch_sub(1, Ordering::Relaxed);
        reached
    }
}
