//! How a worker serves the sources: what is due at its own seat between two turns, at all seats
//! when it finds no process, and at a rotation what is late elsewhere.
//!
//! **Problem.** A worker reads the time as the monitor has read it last, because the clock costs as
//! much as a short step. What is due is to be delivered sooner than that shows.
//!
//! **Rejected.** The clock at each pick. The worker's deque for what is delivered: the newest would
//! come first. The urgent lane: what a system event wakes would wait behind it.
//!
//! **Protocol.** A worker compares the coarse time with its *alert*: no later than its next
//! rotation, and a little before the earliest moment at its seat. From the latter on it reads the
//! clock, each time that picks for about [`PACE`] have passed. What it delivers goes to the lane of
//! arrivals, from which all workers take (`worker/ladder.rs`).

use super::Worker;
use crate::core::sources::{NEAR, Seat};

/// For so many nanoseconds of picks a worker does not read the clock, when something is due soon.
const PACE: u64 = 5_000;

/// After so many picks it reads the clock at the latest.
const MOST_UNSEEN: u32 = 256;

/// So late, in nanoseconds, a worker delivers what another one has not.
const LATE: u64 = 100_000;

/// For so many nanoseconds no thread has to look in the driver.
const UNSEEN: u64 = 50_000;

/// When a worker reads the clock next.
#[derive(Default)]
pub(super) struct Pacing {
    /// Picks until then.
    left: u32,
    /// What that was when it was set.
    granted: u32,
    /// When the clock was read last.
    at: u64,
}

impl Pacing {
    /// The clock shows that.
    fn read(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.at).max(1);
        let picks = PACE.saturating_mul(u64::from(self.granted) + 1) / elapsed;
        let picks = u32::try_from(picks).unwrap_or(u32::MAX);
        self.granted = picks.clamp(1, MOST_UNSEEN) - 1;
        (self.left, self.at) = (self.granted, now);
    }
}

impl Worker<'_> {
    /// The time for it has come: delivers what is due at the own seat.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_timers(&mut self) {
        if self.slot.sources() == 0 {
            // A handler has left it to this worker to see to it that the moment is covered, if
            // there is another turn: see `hand_over_wait`.
            self.mark_searching();
        } else if let Some(left) = self.pacing.left.checked_sub(1) {
            self.pacing.left = left;
            return;
        }
        let now = self.shared.now();
        self.pacing.read(now);
        self.poll_timers_own(now);
    }

    fn poll_timers_own(&self, now: u64) {
        let seat = Seat::of_worker(self.queue.index);
        self.shared.deliver_at(seat, now);
        let due = self.shared.timer_waiter.dues.at(seat.number());
        self.slot.set_sources(due.saturating_sub(NEAR).max(1));
    }

    /// A rotation: delivers what is late at other seats, whose workers are in long steps, or which
    /// are no worker's.
    #[inline]
    pub(super) fn poll_timers_late(&mut self, coarse: u64) {
        if self.shared.timer_waiter.is_used() {
            self.poll_timers_of_others(coarse);
        }
        if self.shared.is_driver_left() {
            self.look_in_driver_late();
        }
    }

    /// Looks in the driver, if no thread has for a while.
    #[cold]
    #[inline(never)]
    fn look_in_driver_late(&mut self) {
        let left = (self.shared.driven.as_ref()).map(|driven| driven.waiter.left());
        if left.is_some_and(|left| self.shared.now() >= left.saturating_add(UNSEEN)) {
            self.look_in_driver();
            self.shared.idle.defer();
        }
    }

    /// Looks in the driver, if no other thread is there. Returns whether something was ready.
    pub(super) fn look_in_driver(&mut self) -> bool {
        let shared = self.shared;
        // A call there may last, and pushers rely on a worker that searches.
        let ready = shared.look_in_driver(|| self.stop_searching());
        let is_ready = !ready.is_empty();
        self.shared.schedule_ready(self.queue, ready);
        is_ready
    }

    #[cold]
    #[inline(never)]
    fn poll_timers_of_others(&mut self, coarse: u64) {
        let earliest = self.shared.timer_waiter.dues.earliest(self.shared.seats());
        if earliest.saturating_sub(NEAR) <= coarse {
            let now = self.shared.now();
            self.shared.deliver_all(now.saturating_sub(LATE));
        }
    }

    /// Nothing is queued, or the worker has slept: delivers all that is due. Returns whether
    /// something was.
    pub(super) fn poll_timers_all(&mut self) -> bool {
        if !self.shared.timer_waiter.is_used() {
            return false;
        }
        let now = self.shared.now();
        self.pacing.read(now);
        self.poll_timers_own(now);
        self.shared.deliver_all(now)
    }

    /// It has announced its sleep: until when it sleeps, if it is the timer waiter.
    pub(super) fn claim_timer_wait(&self) -> Option<u64> {
        let shared = self.shared;
        if !shared.timer_waiter.is_used() {
            return None;
        }
        let until = shared.timer_waiter.claim(shared.seats())?;
        // Others are woken for what is pushed: the timer waiter stays.
        shared.idle.wake_last(self.queue.index);
        Some(until)
    }

    /// For how long it is to sleep.
    pub(super) fn time_until(&self, until: u64) -> std::time::Duration {
        std::time::Duration::from_nanos(until.saturating_sub(self.shared.now()))
    }

    /// It has found a process after a look that found none. What is due next may be left to it
    /// alone, and the turn may be long.
    #[inline]
    pub(super) fn hand_over_wait(&self) {
        let shared = self.shared;
        // The end of a search does the same.
        if !self.searching && shared.timer_waiter.is_used() && shared.owes_a_look() {
            shared.idle.notify();
        }
        if shared.is_driver_left() {
            shared.idle.defer();
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    /// How many picks of that length come between two looks at the clock.
    fn picks(each: u64) -> u32 {
        let mut pacing = Pacing::default();
        let mut now = 1_000_000;
        for _ in 0..10 {
            now += each * u64::from(pacing.granted + 1);
            pacing.read(now);
        }
        pacing.granted + 1
    }

    #[test]
    fn the_clock_is_read_as_often_as_steps_are_long() {
        assert_eq!([1_000_000, 5_000, 1_000, 1].map(picks), [1, 1, 5, 256]);
    }
}
