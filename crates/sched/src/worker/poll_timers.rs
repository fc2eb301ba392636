//! How a worker polls the timers: its own shard between two turns, all shards when it finds no
//! process, and at a rotation the late timers of other shards.
//!
//! **Problem.** A worker takes the time from the monitor's last read, because the clock costs as
//! much as a short step. Timers must be delivered sooner than this coarse time shows.
//!
//! **Rejected.** The clock at each pick. Delivery to the worker's deque: the newest would come
//! first. Delivery to the urgent lane: system events would wait behind timers.
//!
//! **Protocol.** A worker compares the coarse time with its *alert*: no later than its next
//! rotation, and [`TIMER_NEAR`] before the earliest deadline of its shard. From there on the worker
//! reads the clock after picks for about [`TIMER_SPAN`](crate::policy::TIMER_SPAN) each. Delivered
//! processes go to the lane of arrivals, from which all workers take (`worker/ladder.rs`).

use super::Worker;
use crate::policy::{LATE_AT_WORKERS, TIMER_NEAR};
use ganger_time::internal::ShardId;

impl Worker<'_> {
    /// Polls the own shard, if enough picks have passed since the last read of the clock.
    #[cold]
    #[inline(never)]
    pub(super) fn poll_timers(&mut self) {
        if self.slot.timers() == 0 {
            // A handler has set a timer without a waiting thread. This worker passes the wait on
            // before its next turn: see `hand_over_wait`.
            self.mark_searching();
        } else if let Some(left) = self.timers_left.checked_sub(1) {
            self.timers_left = left;
            return;
        }
        self.poll_timers_own();
    }

    /// Reads the clock, and delivers the due timers of the own shard.
    fn poll_timers_own(&mut self) -> u64 {
        let now = self.shared.now();
        self.timer_pace.measure(self.timer_pace.picks, now);
        self.timers_left = self.timer_pace.picks - 1;
        let shard = ShardId::of_worker(self.queue.index);
        self.shared.fire_at(shard, now);
        let due = self.shared.timing.timer_waiter.dues.at(shard.index());
        self.slot.set_timers(due.saturating_sub(TIMER_NEAR).max(1));
        now
    }

    /// Delivers late timers of other shards at a rotation: their workers are in long steps, or the
    /// shards belong to threads outside.
    pub(super) fn poll_timers_late(&mut self, coarse: u64) {
        if self.shared.timing.timer_waiter.is_used() {
            self.poll_timers_of_others(coarse);
        }
        if self.shared.is_driver_left() {
            self.look_in_driver_late();
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_timers_of_others(&mut self, coarse: u64) {
        let earliest = self
            .shared
            .timing
            .timer_waiter
            .dues
            .earliest(self.shared.shards_in_use());
        if earliest.saturating_sub(TIMER_NEAR) <= coarse {
            let now = self.shared.now();
            self.shared.fire_all(now.saturating_sub(LATE_AT_WORKERS));
        }
    }

    /// Delivers all due timers, when nothing is queued, or the worker has slept. Returns whether
    /// any was due.
    pub(super) fn poll_timers_all(&mut self) -> bool {
        if !self.shared.timing.timer_waiter.is_used() {
            return false;
        }
        let now = self.poll_timers_own();
        self.shared.fire_all(now)
    }

    /// Claims the wait for the earliest timer, for a worker that has announced its sleep. Returns
    /// the deadline for which it now waits, unless another sleeper waits for the earliest.
    pub(super) fn claim_timer_wait(&self) -> Option<u64> {
        let shared = self.shared;
        if !shared.timing.timer_waiter.is_used() {
            return None;
        }
        let until = shared.timing.timer_waiter.claim(shared.shards_in_use())?;
        // Pushers wake other sleepers first.
        shared.queues.idle.wake_last(self.queue.index);
        Some(until)
    }

    /// Returns how long to sleep for a deadline.
    pub(super) fn time_until(&self, until: u64) -> std::time::Duration {
        std::time::Duration::from_nanos(until.saturating_sub(self.shared.now()))
    }

    /// Hands the waits over when the worker has found a process after an empty search. No other
    /// thread may wait for the next timer or in the driver, and the turn may be long.
    pub(super) fn hand_over_wait(&self) {
        let shared = self.shared;
        // A worker that counts as searching does the same when it ends its search.
        if !self.searching && shared.timing.timer_waiter.is_used() && self.owes_a_look() {
            shared.queues.idle.notify();
        }
        if shared.is_driver_left() {
            shared.queues.idle.defer();
        }
    }

    /// Returns whether another worker has to look for processes, or to wait for the timer next due.
    /// A worker that is soon back in the driver keeps both, and has the monitor watch
    /// (`worker/batch.rs`).
    pub(super) fn owes_a_look(&self) -> bool {
        let (shared, queue) = (self.shared, self.queue);
        if !queue.keeps() {
            return shared.owes_a_look();
        }
        if shared.has_work_beside(queue.index) {
            return true;
        }
        let is_uncovered = shared.is_any_uncovered();
        if is_uncovered && self.batch.is_brief() {
            shared.queues.idle.defer();
            return false;
        }
        is_uncovered
    }
}
