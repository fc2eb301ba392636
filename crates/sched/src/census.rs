//! How many processes live: a count that every submit and every end changes, and that can be waited for.
//!
//! **Problem.** One counter for all threads is a cache line that each of them has to fetch from another,
//! twice in the life of each process.
//!
//! **Protocol.** Each worker counts in a place of its own who has begun and who has ended, and all other
//! threads together in one more. A process may end elsewhere than it has begun.
//! - *Who counts the living* reads all that have ended, then all that have begun: who is seen to have
//!   ended is seen to have begun, so that nobody is overlooked; who begins meanwhile may be counted.
//! - *Who ends* counts, then looks whether somebody waits; *who waits* says so, then counts.
//! - *Who begins* counts, then looks whether the scheduler is stopping; *who stops it* says so, then
//!   counts.
//!
//! Those who begin and end make light fences in between, those who wait and stop heavy ones.

use crate::clock::Deadline;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::sync::{Condvar, Mutex, lock};
use ganger_sync::{CachePadded, fence};
use std::sync::PoisonError;
use std::time::Duration;

pub(crate) struct Census {
    /// Those of the workers, and last that of all other threads.
    places: Box<[CachePadded<Place>]>,
    waiters: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

#[derive(Default)]
struct Place {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Census {
    /// For that many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            places: (0..=workers).map(|_| CachePadded::default()).collect(),
            waiters: AtomicUsize::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// How many live, and perhaps some that began or ended just now. O(workers).
    pub(crate) fn get(&self) -> usize {
        // Ordering: Acquire pairs with the Release in `leave`: who is seen to have ended has begun
        // before, and what it did is seen.
        let ended = |place: &CachePadded<Place>| place.ended.load(Ordering::Acquire);
        let ended = self.places.iter().map(ended).fold(0, usize::wrapping_add);
        // Ordering: Relaxed, as the loads above order these.
        let begun = |place: &CachePadded<Place>| place.begun.load(Ordering::Relaxed);
        let begun = self.places.iter().map(begun).fold(0, usize::wrapping_add);
        begun.wrapping_sub(ended)
    }

    /// One begins, on that worker or elsewhere. What the caller loads after this comes after it, for
    /// whoever makes a heavy fence between a store there and [`get`](Self::get).
    pub(crate) fn enter(&self, worker: Option<usize>) {
        let place = self.place(worker);
        count(&place.begun, worker.is_some());
        fence::light();
    }

    /// One has ended, on that worker or elsewhere.
    pub(crate) fn leave(&self, worker: Option<usize>) {
        let place = self.place(worker);
        count(&place.ended, worker.is_some());
        fence::light();
        // Ordering: Relaxed: the fence pairs with the heavy one in `wait`.
        if self.waiters.load(Ordering::Relaxed) > 0 {
            self.poke();
        }
    }

    /// Lets those who wait look at their target and deadline again.
    pub(crate) fn poke(&self) {
        drop(lock(&self.lock));
        self.changed.notify_all();
    }

    /// Blocks until at most `target` are left, or the deadline has passed. Returns whether they are.
    ///
    /// Both may change meanwhile; [`poke`](Self::poke) says so.
    pub(crate) fn wait(&self, target: impl Fn() -> usize, deadline: impl Fn() -> Deadline) -> bool {
        // Ordering: Relaxed: the fence below pairs with the light one in `leave`.
        self.waiters.fetch_add(1, Ordering::Relaxed);
        fence::heavy();
        let mut guard = lock(&self.lock);
        let reached = loop {
            if self.get() <= target() {
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

    fn place(&self, worker: Option<usize>) -> &Place {
        let others = self.places.len() - 1;
        &self.places[worker.unwrap_or(others)]
    }
}

/// Adds one. Without a read-modify-write where no other thread counts.
fn count(counter: &AtomicUsize, is_own: bool) {
    if is_own {
        // Ordering: Relaxed: this thread wrote it. Release pairs with the Acquire in `get`.
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Release,
        );
    } else {
        // Ordering: Release pairs with the Acquire in `get`, through the additions of others as well.
        counter.fetch_add(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn it_counts_who_lives_wherever_they_begin_and_end() {
        let census = Census::new(2);
        for worker in [None, Some(0), Some(1)] {
            census.enter(worker);
        }
        assert_eq!(census.get(), 3);
        for worker in [Some(1), Some(1), None] {
            census.leave(worker);
        }
        assert_eq!(census.get(), 0);
    }

    #[test]
    fn who_waits_is_told_of_the_last_end() {
        const EACH: usize = 1_000;
        for _ in 0..20 {
            let census = Arc::new(Census::new(2));
            for _ in 0..3 * EACH {
                census.enter(None);
            }
            let enders = [None, Some(0), Some(1)].map(|worker| {
                let census = Arc::clone(&census);
                thread::spawn(move || (0..EACH).for_each(|_| census.leave(worker)))
            });
            assert!(census.wait(|| 0, || Deadline::after(Duration::MAX)));
            assert_eq!(census.get(), 0);
            enders.into_iter().for_each(|ender| ender.join().unwrap());
        }
    }

    #[test]
    fn a_wait_ends_with_its_deadline() {
        let census = Census::new(1);
        census.enter(Some(0));
        let deadline = Deadline::after(Duration::from_millis(1));
        assert!(!census.wait(|| 0, || deadline));
        assert!(census.wait(|| 1, || deadline));
    }

    /// Counts while processes begin and end: nobody who lives all the time is overlooked.
    #[test]
    fn a_count_is_never_too_low() {
        let census = Arc::new(Census::new(2));
        census.enter(None);
        let movers = [0, 1].map(|worker| {
            let census = Arc::clone(&census);
            thread::spawn(move || {
                for _ in 0..10_000 {
                    census.enter(Some(worker));
                    census.leave(Some(worker));
                }
            })
        });
        for _ in 0..10_000 {
            assert!(census.get() >= 1);
        }
        movers.into_iter().for_each(|mover| mover.join().unwrap());
        assert_eq!(census.get(), 1);
    }
}
