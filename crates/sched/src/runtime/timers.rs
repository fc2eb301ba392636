//! How the threads of a scheduler fire its timers.
//!
//! **Problem.** The timers are a crate below (`ganger-time`), without a thread.
//!
//! **Protocol.** A worker fires its own shard between two turns, and all shards when it finds no
//! process, or has slept until a timer is due (`queues/timer_waiter.rs`). At a rotation a worker
//! fires late timers of other shards, and the monitor still later ones. So a worker inside a long
//! step delays nothing for long.

use crate::base::clock::nanos;
use crate::base::contain::contain_and_report;
use crate::policy::{TIMER_BATCH, TIMER_NEAR};
use crate::probe::{Decide, Decider, Probe};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use ganger_proc_api::{Envelope, Instant, Pid};
use ganger_time::internal::{COMMANDS, Commands, ShardId, Shards, Ticket};
use std::sync::Arc;

/// When a worker covers a timer that is due earlier than all before.
#[derive(PartialEq, Eq)]
pub(crate) enum Cover {
    Now,
    BeforeNextTurn,
}

/// Announces a timer of the worker's own shard that is due earlier than all before.
pub(crate) fn announce_here(queue: &LocalQueue, at: u64, cover: Cover) {
    let shared = &queue.shared;
    let slot = shared.worker_slots.slot(queue.index);
    slot.alert_from(at.saturating_sub(TIMER_NEAR));
    if shared.queues.idle.is_unwatched_behind_write() && shared.timing.timer_waiter.is_uncovered(at)
    {
        match cover {
            Cover::Now => shared.queues.idle.wake_monitor(),
            // See `Worker::poll_timers`.
            Cover::BeforeNextTurn => slot.alert_from(0),
        }
    }
}

impl Shared {
    /// Registers the handlers of the timers' commands, and tells the driver of this scheduler.
    pub(crate) fn attach(self: &Arc<Self>) {
        let commands = Arc::new(Commands::new(Arc::clone(self.timing.timers.shards())));
        for (id, name) in COMMANDS {
            if let Err(error) = self.commands.register_any(id, name, commands.clone()) {
                unreachable!("they are the first: {error}")
            }
        }
        if let Some(driven) = &self.timing.driven {
            driven.attach(&self.commands);
        }
    }

    fn shards(&self) -> &Shards {
        self.timing.timers.shards()
    }

    /// Notifies the timers of the scheduler's halt.
    pub(crate) fn close_timers(&self) {
        self.contain_timers(|| self.shards().close());
    }

    /// Has the timers give memory back.
    pub(crate) fn release_timers(&self) {
        self.contain_timers(|| self.shards().release_memory());
    }

    /// Takes the envelope under the ticket, if it is still kept and `is_wanted` agrees.
    pub(crate) fn take_held(
        &self,
        ticket: Ticket,
        is_wanted: impl FnOnce(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let mut envelope = None;
        self.contain_timers(|| envelope = self.shards().take_envelope(ticket, is_wanted));
        envelope
    }

    /// Returns the time, by the clock, in nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        nanos(Decider::time_of(self.number).unwrap_or_else(|| self.timing.time.read()))
    }

    /// Returns whether a timer is set.
    pub(crate) fn waits_for_time(&self) -> bool {
        self.timing.timer_waiter.dues.earliest(self.shards_in_use()) < u64::MAX
    }

    /// Returns the number of shards that may have timers.
    pub(crate) fn shards_in_use(&self) -> usize {
        self.worker_slots.used() + 1
    }

    /// Returns whether something is queued, or is due with no thread to wait for it.
    pub(crate) fn owes_a_look(&self) -> bool {
        self.has_work() || self.is_any_uncovered()
    }

    /// Returns whether no thread waits for the timer next due.
    pub(crate) fn is_any_uncovered(&self) -> bool {
        let waiter = &self.timing.timer_waiter;
        waiter.is_used() && waiter.uncovered(self.shards_in_use()).is_some()
    }

    /// Fires up to [`TIMER_BATCH`] due timers of the shard. Returns whether any timer was due.
    pub(crate) fn fire_at(&self, shard: ShardId, now: u64) -> bool {
        let is_due = self.timing.timer_waiter.dues.at(shard.index()) <= now;
        if is_due {
            let late = || {
                self.now()
                    .saturating_sub(self.timing.timer_waiter.dues.at(shard.index()))
            };
            self.probe.firing(|| self.own_index(), late);
            local::firing(|| {
                self.contain_timers(|| {
                    self.shards()
                        .fire(shard, Instant::from_nanos(now), TIMER_BATCH);
                });
            });
        }
        is_due
    }

    /// Fires the timers due by `by`, at all shards. Returns whether any timer was due.
    pub(crate) fn fire_all(&self, by: u64) -> bool {
        let shards = self.shards_in_use();
        if self.timing.timer_waiter.dues.earliest(shards) > by {
            return false;
        }
        let mut was_due = false;
        for shard in 0..shards {
            was_due |= self.fire_at(ShardId::from_index(shard), by);
        }
        was_due
    }

    /// Removes the timers' data for yields that are not wanted any longer.
    pub(crate) fn forget_timers(&self, tickets: &[Ticket]) {
        for &ticket in tickets {
            self.contain_timers(|| self.shards().forget(ticket));
        }
    }

    fn contain_timers(&self, f: impl FnOnce()) {
        let pid = Pid::new(self.host, 0);
        contain_and_report("a timer", pid, self.own_counters(), f);
    }
}
