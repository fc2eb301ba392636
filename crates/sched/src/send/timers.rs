//! The scheduler, as its timers see it.

use crate::base::clock::{Clock, MonotonicClock, nanos};
use crate::base::contain::contain_and_report;
use crate::probe::{Carrier, Carry, Decide, Decider};
use crate::queues::timer_waiter::Dues;
use crate::reports::dead_letters::{DeadLetter, DeadReason};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::timers::{Cover, announce_here};
use ganger_proc_api::{BoxError, Command, Completer, Envelope, Instant, Pid};
use ganger_sync::atomic::{Ordering, fence};
use ganger_time::internal::{Cause, ShardId, Shards, Ticket, TimerHost};
use ganger_time::{Timer, Timers};
use std::ptr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Makes the timers of a scheduler, in `shards` shards.
pub(crate) fn make_timers(
    shared: &Weak<Shared>,
    dues: &Arc<Dues>,
    clock: MonotonicClock,
    shards: usize,
) -> Timers {
    let host = Host {
        shared: Weak::clone(shared),
        dues: Arc::clone(dues),
        clock,
    };
    Timers::new(Shards::new(Box::new(host), shards))
}

/// The scheduler, as its timers see it.
struct Host {
    shared: Weak<Shared>,
    dues: Arc<Dues>,
    clock: MonotonicClock,
}

impl TimerHost for Host {
    fn now(&self) -> Instant {
        let own = || Decider::time_of(self.shared.upgrade()?.number);
        let simulated = Decider::time().map(|time| own().unwrap_or(time));
        let now = simulated.unwrap_or_else(|| self.clock.now());
        Instant::from_nanos(nanos(now))
    }

    fn own_shard(&self) -> ShardId {
        self.with_queue(|queue| {
            queue.map_or(ShardId::OUTSIDE, |queue| ShardId::of_worker(queue.index))
        })
    }

    fn set_due(&self, shard: ShardId, at: Instant) -> bool {
        self.dues.set(shard.index(), at.as_nanos())
    }

    fn announce(&self, at: Instant) {
        self.with_queue(|queue| match queue {
            Some(queue) => announce_here(queue, at.as_nanos(), Cover::Now),
            None => self.announce_from_outside(at.as_nanos()),
        });
    }

    fn announce_in_turn(&self, at: Instant) {
        self.with_queue(|queue| match queue {
            Some(queue) => announce_here(queue, at.as_nanos(), Cover::BeforeNextTurn),
            None => self.announce_from_outside(at.as_nanos()),
        });
    }

    fn send_held(&self, target: Pid, ticket: Ticket) -> bool {
        let shared = self.shared.upgrade();
        shared.is_some_and(|shared| send_held(&shared, target, ticket))
    }

    fn send_caused(&self, target: Pid, ticket: Ticket, cause: Cause) -> bool {
        Carrier::within(cause, || self.send_held(target, ticket))
    }

    fn carry_out(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        let shared = self.shared.upgrade().ok_or("the scheduler is gone")?;
        shared
            .commands
            .carry_out(command, completer, shared.own_counters())
    }
}

impl Host {
    #[cold]
    #[inline(never)]
    fn announce_from_outside(&self, at: u64) {
        if let Some(shared) = self.shared.upgrade() {
            // Ordering: SeqCst, pairs with the heavy fences in `idle.rs` and with the fence of
            // `Idle::end_search`: either the thread there sees the moment, or it is seen below to
            // sleep, or to search no more, and the timer_waiter's moment to be another.
            fence(Ordering::SeqCst);
            if shared.timing.timer_waiter.is_uncovered(at) {
                shared.queues.idle.notify_from_outside();
            }
        }
    }

    #[inline]
    fn with_queue<R>(&self, f: impl FnOnce(Option<&LocalQueue>) -> R) -> R {
        let is_own =
            |queue: &&LocalQueue| ptr::eq(Arc::as_ptr(&queue.shared), self.shared.as_ptr());
        local::with_any(|queue| f(queue.filter(is_own)))
    }
}

/// Sends a message kept under the ticket. Nothing is sent when it has been taken back. An envelope
/// for another scheduler is sent as any other, and can't be taken back. Returns `false` after a
/// refusal, which makes a dead letter. Never blocks.
fn send_held(shared: &Arc<Shared>, target: Pid, ticket: Ticket) -> bool {
    let task = shared.find(target);
    let refused = task.as_ref().and_then(|task| {
        let is_refused = |it: &Envelope| task.accepts.refuses(&it.message).is_some();
        task.accepts.get()?;
        shared.take_held(ticket, is_refused)
    });
    let envelope = match refused {
        None if task.is_some_and(|task| task.deliver_held(ticket)) => None,
        None => shared.take_held(ticket, |_| true),
        refused => refused,
    };
    let Some(Err(error)) = envelope.map(|envelope| shared.route(envelope)) else {
        return true;
    };
    let Envelope { target, message } = &*error.envelope;
    let reason = DeadReason::of_late(&error.kind);
    let at = Instant::from_nanos(shared.now());
    let letter = DeadLetter::new(reason, message.source, *target, message.topic, at);
    if let Some(sink) = &shared.config.dead_letters {
        contain_and_report("dead letter", letter.target, shared.own_counters(), || {
            sink.dead_message(&letter, message);
        });
    }
    false
}

impl Shared {
    /// Has the envelope sent after `delay`, with the cause of this thread's present work.
    pub(crate) fn send_after(&self, delay: Duration, envelope: Envelope) -> Timer {
        let timers = &self.timing.timers;
        match self.carrier().cause().and_then(Carrier::outwards) {
            None => timers.send_after(delay, envelope),
            Some(cause) => timers.send_caused_after(delay, envelope, cause),
        }
    }

    /// Notifies the sink of dead letters, if any, of a dropped message.
    pub(crate) fn tell_of_dead_letter(&self, letter: &DeadLetter) {
        if let Some(sink) = &self.config.dead_letters {
            contain_and_report("dead letter", letter.target, self.own_counters(), || {
                sink.dead_letter(letter);
            });
        }
    }
}
