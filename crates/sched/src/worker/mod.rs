//! A worker thread: find a process, give it its turn, again.
//!
//! Where a worker looks, and how long a process may wait: `worker/ladder.rs`.
//!
//! **Without work** a worker searches a few times ([`SPIN_LOOKS`](crate::policy::SPIN_LOOKS)), and
//! then sleeps. `queues/idle.rs` says how it sleeps, and why no process stays in a queue while all
//! workers sleep. A worker that may not search, because enough others do, backs off in the same
//! way: it looks at its own deque and the global queue alone. If it slept at once, a thread that
//! pushes many processes in turn would have to wake it after each process that the searcher finds.
//!
//! **A brief wait** ([`BRIEF_WAIT`](crate::policy::BRIEF_WAIT)) cost a sleep and a wake-up for less
//! time than these take. So the next wait begins with [`BRIEF_LOOKS`](crate::policy::BRIEF_LOOKS)
//! more searches (spin for as long as blocking would cost: Karlin, Li, Manasse and Owicki, SOSP
//! 1991, pages 41 to 55). A thread outside of the scheduler gains by it: a spawn takes 0.6 of the
//! time, a question 0.1, where a worker slept before each.
//!
//! **Rejected.** To yield the thread before the sleep, unless the user asks for it by
//! `Builder::spin_limits`. A worker in a yield counts as awake. If another program computes on its
//! processor, the worker comes back a time slice later, and pushed processes wait until then. Linux
//! also charges a thread for a yield: after the next wake-up it waits behind a waker that computes.

mod balance;
mod batch;
mod ladder;
mod pace;
mod poll_timers;
mod ready;
mod retire;
mod rotation;
mod streak;

use self::batch::Batch;
use self::pace::Pace;
use self::rotation::Rotation;
use self::streak::Streak;
use crate::base::clock::nanos;
use crate::base::contain::or_abort;
use crate::base::stats::Counters;
use crate::policy::{BRIEF_LOOKS, BRIEF_WAIT, TIMER_SPAN, TIMER_UNSEEN};
use crate::probe::{Decide, Decider, Probe};
use crate::progress::fence_after_halt;
use crate::queues::idle::Woken;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use crate::runtime::spares::Next;
use crate::runtime::token::Token;
use crate::runtime::turn_place::OnWorker;
use crate::runtime::worker_slots::WorkerSlot;
use crate::turn::run::Runner;
use ganger_deque::Worker as Deque;
use ganger_sync::{hint, thread};
use std::mem;
use std::sync::Arc;

/// The capacity that the deque of a sleeping worker keeps, unless its first was larger.
const KEPT: usize = 1 << 10;

/// Runs a worker on the calling thread until the scheduler halts. The caller calls the result when
/// no thread waits for this thread: the last worker drops the handlers.
pub(crate) fn work(shared: Arc<Shared>, index: usize, deque: Deque<Token>) -> impl FnOnce(&Shared) {
    shared.worker_slots.enter(index);
    shared.counters.of(Some(index)).hand_over();
    let queue = LocalQueue::new(shared, index, deque);
    // Until the worker returns: commands of its last step are carried out as well (P3).
    queue.handlers.take(&queue.shared.commands);
    let mut has_left = false;
    let mut work = || {
        let mut worker = Worker::new(&queue);
        let mut runner = Runner::new(&queue.shared, Some(&queue));
        let place = OnWorker::new(&queue);
        let mut turns = || {
            if or_abort(|| worker.begin()) == Next::Active {
                let mut turns = |runner: &mut Runner<'_>| {
                    while let Some(token) = or_abort(|| worker.next_while_active()) {
                        runner.turn(place, token);
                    }
                };
                or_abort(|| runner.contain_turns(&mut turns));
            }
        };
        match &queue.shared.reporting.backtraces {
            Some(sampler) => sampler.while_available(index, &place, &mut turns),
            None => turns(),
        }
        has_left = worker.has_left;
    };
    let work = &mut || local::enter(&queue, &mut work);
    or_abort(|| queue.shared.with_worker(work));
    let LocalQueue {
        shared,
        deque,
        cache,
        handlers,
        ..
    } = queue;
    cache.into_inner().leave(&shared.census.pool);
    let is_halted = shared.shutdown.is_halted();
    if is_halted {
        shared.census.pool.close();
    }
    shared.probe.retiring(index);
    shared.worker_slots.exit(index);
    if has_left {
        shared.worker_slots.leave(index, deque);
    }
    move |shared: &Shared| {
        let counters = shared.counters.of(None);
        handlers.leave(counters);
        if is_halted {
            shared.commands.give_up(counters);
            shared.extensions.halt(counters);
            shared.close_timers();
            shared.detach_driver();
        }
    }
}

/// The result of a search.
enum Looked {
    Found(Token),
    Nothing(Backoff),
    Halted,
}

/// How to wait for the next search.
#[derive(Debug, PartialEq, Eq)]
enum Backoff {
    Spin,
    Yield,
    Sleep,
}

struct Worker<'a> {
    queue: &'a LocalQueue,
    shared: &'a Shared,
    counters: &'a Counters,
    slot: &'a WorkerSlot,
    random: fastrand::Rng,
    /// Whether the worker counts as searching in `idle`.
    searching: bool,
    /// Picks from the urgent lane since a pick from elsewhere.
    urgent_streak: u32,
    arrivals: Streak,
    rotation: Rotation,
    /// Picks between two reads of the clock while a timer is due soon, and how many are left.
    timer_pace: Pace,
    timers_left: u32,
    /// Time of the last comparison with another worker: see `worker/balance.rs`.
    last_balance: u64,
    batch: Batch,
    /// When the current wait for work began, or the last.
    waits_since: u64,
    /// Whether the last wait with a sleep was brief.
    was_brief: bool,
    /// The worker is in no turn, as `WorkerSlots` knows.
    is_looking: bool,
    /// The worker was an idle spare, and its thread ends.
    has_left: bool,
}

impl<'a> Worker<'a> {
    fn new(queue: &'a LocalQueue) -> Self {
        let shared = &*queue.shared;
        let slot = shared.worker_slots.slot(queue.index);
        let rotation = Rotation::new(&shared.config, shared.timing.time.nanos());
        if shared.timing.timer_waiter.is_used() {
            // The last worker in this slot may have left timers.
            slot.set_timers(1);
        }
        slot.set_alert(rotation.due());
        Self {
            queue,
            shared,
            counters: shared.counters.of(Some(queue.index)),
            slot,
            rotation,
            timer_pace: Pace::new(TIMER_SPAN, TIMER_UNSEEN, 1, 0),
            timers_left: 0,
            last_balance: 0,
            batch: Batch::new(),
            random: fastrand::Rng::with_seed(queue.index as u64),
            searching: false,
            urgent_streak: 0,
            arrivals: Streak::default(),
            waits_since: 0,
            was_brief: false,
            is_looking: false,
            has_left: false,
        }
    }

    /// Announces the worker, and learns whether a spare has replaced it before.
    fn begin(&mut self) -> Next {
        self.mark_searching();
        if !self.slot.is_replaced() {
            return Next::Active;
        }
        let next = self.retire();
        self.has_left = next == Next::Leave;
        next
    }

    /// Finds a process as [`next`](Self::next) does. A worker replaced by a spare retires first;
    /// `None` also if its thread ends then.
    #[inline(always)]
    fn next_while_active(&mut self) -> Option<Token> {
        if self.slot.is_replaced() && self.retire() == Next::Leave {
            self.has_left = true;
            return None;
        }
        self.next()
    }

    /// Finds the next process to run; `None` when the scheduler has halted. Blocks until work
    /// comes.
    fn next(&mut self) -> Option<Token> {
        let mut empty_looks = 0_u32;
        self.shared.probe.looking(self.queue.index);
        loop {
            match self.look_once(&mut empty_looks) {
                Looked::Found(token) => {
                    self.announce_found();
                    return Some(token);
                }
                Looked::Halted => {
                    self.end_search();
                    return None;
                }
                Looked::Nothing(backoff) => empty_looks = self.back_off(&backoff, empty_looks)?,
            }
        }
    }

    /// Waits after `empty_looks` empty searches, and retires if the worker was replaced meanwhile.
    /// Returns the new number of empty searches; `None` if the thread ends.
    #[cold]
    #[inline(never)]
    fn back_off(&mut self, backoff: &Backoff, empty_looks: u32) -> Option<u32> {
        let sleeps = *backoff == Backoff::Sleep && !self.looks_on(empty_looks);
        match backoff {
            Backoff::Yield => thread::yield_now(),
            Backoff::Sleep if sleeps => self.sleep(),
            Backoff::Spin | Backoff::Sleep => hint::spin_loop(),
        }
        if self.slot.is_replaced() {
            if mem::take(&mut self.searching) {
                self.shared
                    .queues
                    .idle
                    .end_search(|| self.shared.owes_a_look());
            }
            if self.retire() == Next::Leave {
                self.has_left = true;
                return None;
            }
            return Some(0);
        }
        Some(if sleeps { 0 } else { empty_looks })
    }

    /// Returns whether the worker searches once more before the sleep, because its last wait was
    /// brief.
    fn looks_on(&mut self, empty_looks: u32) -> bool {
        let config = &self.shared.config;
        let looks = empty_looks.saturating_sub(config.spin_looks.max(config.yield_looks).max(1));
        if looks == 0 {
            self.waits_since = nanos(self.shared.timing.time.read());
        }
        self.was_brief && looks < BRIEF_LOOKS && !self.shared.is_driver_left()
    }

    /// Searches once, after `empty_looks` empty searches.
    fn look_once(&mut self, empty_looks: &mut u32) -> Looked {
        if let Some(token) = self.find_work() {
            return self.leave_search(token);
        }
        self.mark_searching();
        let is_first = *empty_looks == 0;
        if (self.poll_timers_all() | (is_first && self.look_in_driver()))
            && let Some(token) = self.find_work()
        {
            return self.leave_search(token);
        }
        if self.shared.shutdown.is_halted() {
            // A process may have been queued since, before the halt.
            fence_after_halt();
            return self
                .find_work()
                .map_or(Looked::Halted, |it| self.leave_search(it));
        }
        *empty_looks = empty_looks.saturating_add(1);
        Looked::Nothing(if *empty_looks < self.shared.config.spin_looks {
            Backoff::Spin
        } else if *empty_looks < self.shared.config.yield_looks {
            Backoff::Yield
        } else {
            Backoff::Sleep
        })
    }

    /// Leaves the search for a turn of this process.
    fn leave_search(&mut self, token: Token) -> Looked {
        if self.is_looking {
            self.is_looking = false;
            self.shared
                .worker_slots
                .set_looking(self.queue.index, false);
            self.shared.probe.found(self.queue.index);
            self.hand_over_wait();
        }
        self.shared
            .probe
            .picked(self.queue.index, &token.cell().probe);
        Looked::Found(token)
    }

    /// Announces that the worker has found a process: ends the search, and wakes a sleeper for the
    /// rest.
    fn announce_found(&mut self) {
        self.end_search();
        self.shared.probe.settled(self.queue.index);
    }

    /// Marks the worker as in no turn.
    fn mark_searching(&mut self) {
        if !mem::replace(&mut self.is_looking, true) {
            self.shared.worker_slots.set_looking(self.queue.index, true);
            self.shared.probe.searching(self.queue.index);
        }
    }

    /// Ends the search, and wakes a sleeper if processes remain.
    fn end_search(&mut self) {
        self.stop_searching();
        self.queue.offer();
    }

    fn stop_searching(&mut self) {
        if self.searching {
            self.leave_searchers();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_searchers(&mut self) {
        self.searching = false;
        self.shared.queues.idle.end_search(|| self.owes_a_look());
    }

    fn sleep(&mut self) {
        self.counters.sleeps.bump();
        self.enter_driver();
        let searching = mem::take(&mut self.searching);
        let (mut kept, mut ready) = (None, Vec::new());
        let woken = self.shared.queues.idle.sleep_by(
            self.queue.index,
            searching,
            || self.shared.shutdown.is_halted() || self.slot.is_replaced(),
            || self.shared.has_work(),
            |parker| {
                kept = self.claim_timer_wait();
                self.fall_asleep();
                let time = kept.map(|until| self.time_until(until));
                let blocked;
                // Pushers wake other sleepers first.
                let may_wait = || self.shared.queues.idle.wait_elsewhere(self.queue.index);
                (blocked, ready) = self.shared.block(parker, time, may_wait);
                blocked
            },
        );
        self.wake_up(woken, kept);
        let now = self.shared.timing.time.nanos();
        self.was_brief = now.saturating_sub(self.waits_since) < BRIEF_WAIT;
        self.leave_driver(ready);
    }

    /// Prepares a worker that is about to block, and sends nothing for a while.
    fn fall_asleep(&self) {
        ganger_mpsc::node_cache::end_runs();
        self.shrink_after_burst();
        let (probe, scheduler) = (&self.shared.probe, &self.queue.shared);
        probe.falling_asleep(self.queue.index, scheduler);
        probe.sleeping(self.queue.index);
    }

    /// Releases the memory of a deque that has grown.
    fn shrink_after_burst(&self) {
        let kept = KEPT.max(self.shared.config.deque_capacity);
        if self.queue.deque.capacity() > kept {
            self.queue.deque.shrink_to_fit();
        }
    }

    fn wake_up(&mut self, woken: Woken, kept: Option<u64>) {
        if let Some(until) = kept {
            self.shared.timing.timer_waiter.release(until);
        }
        self.shared.probe.looking(self.queue.index);
        self.shared.probe.awake(self.queue.index);
        self.searching = match woken {
            Woken::Notified => true,
            // Search again: pushers that saw this worker search may have queued more than the
            // item that kept it awake.
            Woken::Withdrawn | Woken::Elsewhere => self.shared.queues.idle.begin_search(),
        };
        // The clock stands still while all sleep.
        let time = &self.shared.timing.time;
        time.go_on(Decider::time().unwrap_or_else(|| time.read()));
        self.rotation.restart(self.shared.timing.time.nanos());
        self.poll_timers_all();
    }
}

#[cfg(feature = "sim")]
pub(crate) mod simulated;

#[cfg(all(test, not(ganger_loom)))]
mod tests;
