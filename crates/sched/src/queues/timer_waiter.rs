//! The wait until something is due, by a thread at a time.
//!
//! **Problem.** The machine does not announce the moments of timers. A thread must wait until the
//! earliest moment, while the rest sleep for as long as they like. Its wait must shorten when an
//! earlier moment comes up.
//!
//! **Rejected.** A thread of its own: each expiry costs a hop between threads. A timeout on every
//! sleep: all workers wake for each expiry. The monitor's looks: an idle machine wakes again and
//! again.
//!
//! **State.** The moments at which something is due ([`Dues`]): a moment for each *shard* of the
//! timers, which belongs to a worker, or to all other threads together. A worker lowers its own
//! shard's alone. And the moment until which a sleeping worker, the *timer waiter*, waits;
//! [`NEVER`] without a timer waiter.
//!
//! **Protocol.** A moment before the timer waiter's is *uncovered*. An uncovered moment is like a
//! queued item:
//! 1. A worker that falls asleep announces its sleep, makes a heavy fence, and reads all moments.
//!    When the earliest is uncovered, the worker lowers the timer waiter's moment to it, and sleeps
//!    until then ([`claim`](TimerWaiter::claim)).
//! 2. An awake timer waiter, for any reason, takes its moment back
//!    ([`release`](TimerWaiter::release)), and then counts as searching.
//! 3. The last worker to end its search notifies when a moment is uncovered, as it does when
//!    something is queued. So does a worker that finds work after an empty look. A worker that has
//!    left the driver for brief turns has the monitor watch instead (`worker/batch.rs`).
//! 4. An outside thread with an earlier moment writes the moment, makes a full fence, and notifies
//!    if the moment is uncovered.
//! 5. A worker with an earlier moment writes it, and owes nothing more while the monitor watches.
//!    Otherwise it wakes the monitor, or notifies before its next turn.
//! 6. The monitor sleeps at most until shortly after the earliest uncovered moment.
//!
//! **Why no moment is overlooked.** Where all workers sleep, the last to fall asleep has read the
//! workers' writes, and the rule for queued items holds for the writes of outside threads
//! (`idle.rs`): the outside thread sees the announcement and wakes a sleeper, or the sleeper sees
//! the moment. A sleeper that lowers the timer waiter's moment covers the former timer waiter's
//! moment. Where a worker is awake, it looks at its own moments between two turns. During a long
//! turn, a sleeper waits for the uncovered moment, or the monitor watches (3, 5, 6).
//!
//! Two sleepers may wait for the same moment. The first to wake takes it back for both, at the cost
//! of a wake-up.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `dues` | timers, under the lock of the shard | all |
//! | `is_used` | timers, before the first moment | all |
//! | `until` | sleeping workers | all |

use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// The moment of a shard with nothing due, in nanoseconds.
pub(crate) const NEVER: u64 = u64::MAX;

/// When something is due at each shard, in nanoseconds. The first shard belongs to the outside
/// threads, the others to the workers.
pub(crate) struct Dues {
    /// Something has ever been due. Until then no thread looks at the moments.
    is_used: AtomicBool,
    moments: Box<[CachePadded<AtomicU64>]>,
}

impl Dues {
    fn new(shards: usize) -> Self {
        let never = || CachePadded::new(AtomicU64::new(NEVER));
        Self {
            is_used: AtomicBool::new(false),
            moments: (0..shards).map(|_| never()).collect(),
        }
    }

    /// Sets when something is due at the shard. Returns whether this is earlier than before.
    pub(crate) fn set(&self, shard: usize, at: u64) -> bool {
        let moment = &self.moments[shard];
        // Ordering: Relaxed: the caller holds a lock. For a thread that must see it in time, the
        // fences of `idle.rs` order it.
        let before = moment.load(Ordering::Relaxed);
        if before != at {
            // Ordering: Relaxed: the caller's lock and the fences of `idle.rs` order it: a thread
            // that must see the moment sees this as well.
            if !self.is_used.load(Ordering::Relaxed) {
                // Ordering: Relaxed: the caller's lock and the fences of `idle.rs` order it.
                self.is_used.store(true, Ordering::Relaxed);
            }
            // Ordering: Relaxed: the caller's lock and the fences of `idle.rs` order it.
            moment.store(at, Ordering::Relaxed);
        }
        at < before
    }

    /// Returns when something is due at the shard.
    pub(crate) fn at(&self, shard: usize) -> u64 {
        // Ordering: Relaxed: a thread that must see it in time is behind a fence.
        self.moments[shard].load(Ordering::Relaxed)
    }

    /// Returns when something is due first among the first `shards` shards.
    pub(crate) fn earliest(&self, shards: usize) -> u64 {
        let moments = self.moments[..shards].iter();
        // Ordering: Relaxed: a thread that must see it in time is behind a fence, as in `at`.
        let moments = moments.map(|moment| moment.load(Ordering::Relaxed));
        moments.min().unwrap_or(NEVER)
    }
}

pub(crate) struct TimerWaiter {
    /// Until when the timer waiter sleeps.
    until: CachePadded<AtomicU64>,
    pub(crate) dues: Arc<Dues>,
}

impl TimerWaiter {
    pub(crate) fn new(shards: usize) -> Self {
        Self {
            until: CachePadded::new(AtomicU64::new(NEVER)),
            dues: Arc::new(Dues::new(shards)),
        }
    }

    /// Returns whether a timer has ever been set: without one, timers cost nothing.
    pub(crate) fn is_used(&self) -> bool {
        // Ordering: Relaxed: a thread that must see it in time is behind a fence, as in `Dues::at`.
        self.dues.is_used.load(Ordering::Relaxed)
    }

    /// Returns whether the timer waiter sleeps beyond the moment.
    pub(crate) fn is_uncovered(&self, moment: u64) -> bool {
        // Ordering: Relaxed: a caller that relies on it is behind a fence.
        moment < self.until.load(Ordering::Relaxed)
    }

    /// Returns the earliest moment at the first `shards` shards, if it is uncovered.
    pub(crate) fn uncovered(&self, shards: usize) -> Option<u64> {
        let earliest = self.dues.earliest(shards);
        self.is_uncovered(earliest).then_some(earliest)
    }

    /// Claims the wait for the earliest timer, for a worker that has announced its sleep and made a
    /// heavy fence. Returns until when the worker sleeps as the timer waiter; none where it is not
    /// needed.
    pub(crate) fn claim(&self, shards: usize) -> Option<u64> {
        let earliest = self.dues.earliest(shards);
        // Ordering: SeqCst, one order with `release`. A failure changes nothing.
        let kept = self
            .until
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |until| {
                (earliest < until).then_some(earliest)
            });
        kept.is_ok().then_some(earliest)
    }

    /// Takes the moment back, for a worker that has waited for it and is awake.
    pub(crate) fn release(&self, until: u64) {
        // Ordering: SeqCst: in `end_search`, or in the next announcement, a fence follows. Either
        // the thread behind the fence sees the moments that relied on this wait, or a thread that
        // reads `until` sees that no waiter is left. A failure: another worker waits for an earlier
        // moment.
        let _another =
            self.until
                .compare_exchange(until, NEVER, Ordering::SeqCst, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_that_of_the_shards_in_use() {
        let dues = Dues::new(3);
        assert_eq!((dues.earliest(3), dues.at(1)), (NEVER, NEVER));
        assert!(dues.set(1, 50) && dues.set(2, 20));
        assert_eq!((dues.at(0), dues.at(1), dues.at(2)), (NEVER, 50, 20));
        assert_eq!((dues.earliest(2), dues.earliest(3)), (50, 20));
        assert!(!dues.set(1, 60) && !dues.set(1, 60));
        assert_eq!((dues.at(1), dues.earliest(2)), (60, 60));
    }

    #[test]
    fn it_is_used_from_the_first_moment_on() {
        let waiter = TimerWaiter::new(2);
        assert!(!waiter.is_used() && !waiter.dues.set(1, NEVER) && !waiter.is_used());
        assert!(waiter.dues.set(1, 50) && waiter.is_used());
        assert!(!waiter.dues.set(1, NEVER) && waiter.is_used());
    }

    #[test]
    fn a_timer_waiter_covers_what_is_not_earlier() {
        let waiter = TimerWaiter::new(2);
        assert_eq!((waiter.claim(2), waiter.uncovered(2)), (None, None));
        waiter.dues.set(0, 50);
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (Some(50), Some(50)));
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (None, None));
        waiter.dues.set(1, 30);
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (Some(30), Some(30)));
        // The former timer waiter wakes.
        waiter.release(50);
        assert!(!waiter.is_uncovered(30) && waiter.is_uncovered(29));
        waiter.release(30);
        assert_eq!(waiter.uncovered(2), Some(30));
    }
}
