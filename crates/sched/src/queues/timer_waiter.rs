//! Which thread waits until something is due.
//!
//! **Problem.** Timers are due at moments that the machine does not announce. A thread has to wait
//! until the earliest of them, while all others sleep for as long as they like. It has to wait no
//! longer when an earlier one comes up.
//!
//! **Rejected.** A thread of its own: each expiry costs a hop between threads. A timeout on every
//! sleep: all workers wake for each expiry. The monitor's looks: an idle machine wakes again and
//! again.
//!
//! **State.** The moments at which something is due ([`Dues`]): one for each source and *seat*,
//! which is a worker, or all other threads together. A worker lowers its own seat's alone. And the
//! moment until which a sleeping worker, the *timer waiter*, waits; [`NEVER`] where there is none.
//!
//! **Protocol.** A moment that is before the timer waiter's is *uncovered*. That is as something
//! queued that no worker has taken:
//! 1. A worker that falls asleep announces its sleep, makes a heavy fence, and reads all moments.
//!    When the earliest is uncovered, it lowers the timer waiter's moment to that, and sleeps until
//!    then ([`claim`](TimerWaiter::claim)).
//! 2. A timer waiter that is awake, for whatever reason, takes its moment back
//!    ([`release`](TimerWaiter::release)), and then counts as searching.
//! 3. The last worker to end its search notifies when a moment is uncovered, as it does when
//!    something is queued. So does a worker that finds work after a look that found nothing.
//! 4. A thread outside that brings up an earlier moment writes that, makes a full fence, and
//!    notifies if the moment is uncovered.
//! 5. A worker that brings one up writes that, and owes no more while the monitor watches.
//!    Otherwise it wakes the monitor, or notifies before its next turn.
//! 6. The monitor sleeps no longer than until shortly after the earliest uncovered moment.
//!
//! **Why no moment is overlooked.** Where all workers sleep, the last one to fall asleep has read
//! what the workers had written, and the rule for queued items holds for what comes from outside
//! (`idle.rs`): the thread outside sees the announcement and wakes a sleeper, or the sleeper sees
//! the moment. A sleeper that lowers the timer waiter's moment covers what the former timer waiter
//! covered. Where a worker is awake, it looks at its own moments between two turns. During a turn
//! that lasts long, a sleeper keeps what is uncovered, or the monitor watches (5, 6).
//!
//! Two sleepers may have kept the same moment. The first one to wake takes it back for both, and
//! that costs a wake-up.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `dues` | a source, under the lock of the seat's part of it | all |
//! | `is_used` | a source, before its first moment | all |
//! | `until` | sleeping workers | all |

use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

/// The moment of what is not due at all, in nanoseconds.
pub(crate) const NEVER: u64 = u64::MAX;

/// When something is due: of each source, at each seat, in nanoseconds. The first seat is of the
/// threads outside, the others of the workers.
pub(crate) struct Dues {
    seats: usize,
    /// Something has ever been due. Until then no thread looks at the moments.
    is_used: AtomicBool,
    moments: Box<[CachePadded<AtomicU64>]>,
}

impl Dues {
    fn new(sources: usize, seats: usize) -> Self {
        let never = || CachePadded::new(AtomicU64::new(NEVER));
        Self {
            seats,
            is_used: AtomicBool::new(false),
            moments: (0..sources * seats).map(|_| never()).collect(),
        }
    }

    pub(crate) fn seats(&self) -> usize {
        self.seats
    }

    /// Says when something of the source is due at that seat. Returns whether that is earlier than
    /// before.
    #[inline]
    pub(crate) fn set(&self, source: usize, seat: usize, at: u64) -> bool {
        let moment = &self.moments[source * self.seats + seat];
        // Ordering: Relaxed: the caller holds a lock. Where a thread has to see it in time, the
        // fences of `idle.rs` order it.
        let before = moment.load(Ordering::Relaxed);
        if before != at {
            // Ordering: Relaxed, as above: a thread that has to see the moment sees this as well.
            if !self.is_used.load(Ordering::Relaxed) {
                // Ordering: Relaxed, as above.
                self.is_used.store(true, Ordering::Relaxed);
            }
            // Ordering: Relaxed, as above.
            moment.store(at, Ordering::Relaxed);
        }
        at < before
    }

    /// When something of the source is due at that seat.
    pub(crate) fn get(&self, source: usize, seat: usize) -> u64 {
        // Ordering: Relaxed: a thread that has to see it in time is behind a fence.
        self.moments[source * self.seats + seat].load(Ordering::Relaxed)
    }

    /// When something is due at that seat.
    pub(crate) fn at(&self, seat: usize) -> u64 {
        let rows = self.moments.chunks_exact(self.seats);
        // Ordering: Relaxed, as in `get`.
        rows.map(|row| row[seat].load(Ordering::Relaxed))
            .min()
            .unwrap_or(NEVER)
    }

    /// When something is due at one of the first so many seats.
    pub(crate) fn earliest(&self, seats: usize) -> u64 {
        let rows = self.moments.chunks_exact(self.seats);
        // Ordering: Relaxed, as in `get`.
        rows.flat_map(|row| &row[..seats])
            .map(|moment| moment.load(Ordering::Relaxed))
            .min()
            .unwrap_or(NEVER)
    }
}

pub(crate) struct TimerWaiter {
    /// Until when the timer waiter sleeps.
    until: CachePadded<AtomicU64>,
    pub(crate) dues: Arc<Dues>,
}

impl TimerWaiter {
    pub(crate) fn new(sources: usize, seats: usize) -> Self {
        Self {
            until: CachePadded::new(AtomicU64::new(NEVER)),
            dues: Arc::new(Dues::new(sources, seats)),
        }
    }

    /// Whether something has ever been due: sources that are not used cost nothing.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        // Ordering: Relaxed, as in `Dues::get`.
        self.dues.is_used.load(Ordering::Relaxed)
    }

    /// Whether the timer waiter sleeps longer than until that moment.
    #[inline]
    pub(crate) fn is_uncovered(&self, moment: u64) -> bool {
        // Ordering: Relaxed: a caller for which it counts is behind a fence.
        moment < self.until.load(Ordering::Relaxed)
    }

    /// The earliest moment at the first so many seats, if it is uncovered.
    pub(crate) fn uncovered(&self, seats: usize) -> Option<u64> {
        let earliest = self.dues.earliest(seats);
        self.is_uncovered(earliest).then_some(earliest)
    }

    /// A worker has announced its sleep and made a heavy fence. Returns until when it sleeps as the
    /// timer waiter; none where it is not needed.
    pub(crate) fn claim(&self, seats: usize) -> Option<u64> {
        let earliest = self.dues.earliest(seats);
        // Ordering: SeqCst, one order with `release`. A failure changes nothing.
        let kept = self
            .until
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |until| {
                (earliest < until).then_some(earliest)
            });
        kept.is_ok().then_some(earliest)
    }

    /// A worker that has kept that moment is awake.
    pub(crate) fn release(&self, until: u64) {
        // Ordering: SeqCst: in `end_search`, or in the next announcement, a fence follows. Either
        // the thread behind that sees the moments that relied on this one, or a thread that reads
        // it sees that there is no waiter. A failure: another worker keeps an earlier moment.
        let _another =
            self.until
                .compare_exchange(until, NEVER, Ordering::SeqCst, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_that_of_all_sources_and_of_the_seats_in_use() {
        let dues = Dues::new(2, 3);
        assert_eq!((dues.earliest(3), dues.at(1)), (NEVER, NEVER));
        assert!(dues.set(0, 1, 70) && dues.set(1, 1, 50) && dues.set(1, 2, 20));
        assert_eq!((dues.at(0), dues.at(1), dues.at(2)), (NEVER, 50, 20));
        assert_eq!((dues.earliest(2), dues.earliest(3)), (50, 20));
        assert!(!dues.set(1, 1, 60) && !dues.set(1, 1, 60));
        assert_eq!((dues.get(0, 1), dues.get(1, 1)), (70, 60));
    }

    #[test]
    fn it_is_used_from_the_first_moment_on() {
        let waiter = TimerWaiter::new(1, 2);
        assert!(!waiter.is_used() && !waiter.dues.set(0, 1, NEVER) && !waiter.is_used());
        assert!(waiter.dues.set(0, 1, 50) && waiter.is_used());
        assert!(!waiter.dues.set(0, 1, NEVER) && waiter.is_used());
    }

    #[test]
    fn a_timer_waiter_covers_what_is_not_earlier() {
        let waiter = TimerWaiter::new(1, 2);
        assert_eq!((waiter.claim(2), waiter.uncovered(2)), (None, None));
        waiter.dues.set(0, 0, 50);
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (Some(50), Some(50)));
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (None, None));
        waiter.dues.set(0, 1, 30);
        assert_eq!((waiter.uncovered(2), waiter.claim(2)), (Some(30), Some(30)));
        // The former one wakes.
        waiter.release(50);
        assert!(!waiter.is_uncovered(30) && waiter.is_uncovered(29));
        waiter.release(30);
        assert_eq!(waiter.uncovered(2), Some(30));
    }
}
