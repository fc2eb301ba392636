//! The thread that watches the workers: it reads the clock for them, and notices steps that keep
//! processes waiting.
//!
//! **Problem.** A step that wakes a process leaves it to its own worker, which is about to be free
//! and has the data in its cache. Waking another worker costs more than most steps. If the step
//! continues, though, another worker has to take the process. And a worker must know the time to
//! rotate after 10 ms, and a look at the clock costs as much as a step.
//!
//! **Rejected.** Each worker looking at the clock at each pick. A timer for each step. A look every
//! 50 us for ever: each look wakes a processor.
//!
//! **At each look**
//! 1. A worker has a process in its deque and has begun no turn since the last look: the monitor
//!    wakes a sleeper, which steals it.
//! 2. Processes wait, no worker sleeps or searches, and a worker's step has blocked its thread, or
//!    has computed for long: a spare takes the worker's place (`worker_slots.rs`). The monitor
//!    reports the step; at DEBUG if the step has announced the block.
//! 3. The same, for a step whose worker was replaced at its announcement of a block, and which
//!    computes for long afterwards: the monitor reports it. Time inside `blocking` does not count.
//!
//! 4. The monitor fires late timers, missed by all workers. When at two looks no thread waits for
//!    the timer due next, it wakes a sleeper for this wait.
//! 5. The monitor polls the driver when no thread has since the last look, and wakes a sleeper to
//!    wait there: see `queues/waiter.rs`.
//!
//! **How often it looks.** First after the hand-off delay, then at intervals that double, until it
//! finds a step that has kept a process waiting. The finding takes two looks: the first sees the
//! turn begun, and the second sees it unchanged. So a process behind the first long step of a
//! worker waits for up to twice [`LONGEST_LOOK`]. The monitor sleeps while no worker works and
//! nothing waits. A thread that pushes an item to watch wakes it.

#[cfg(feature = "sim")]
pub(crate) mod simulated;

use super::sample::WorkerSample;
use crate::base::clock::{Clock, nanos};
use crate::base::contain::or_abort;
use crate::policy::{CLOSE_LOOK, LATE_AT_MONITOR, LONGEST_LOOK, QUIET};
use crate::probe::Probe;
use crate::reports::long_steps::LongStepKind;
use crate::runtime::shared::Shared;
use crate::runtime::threads;
use std::io;
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Starts the thread.
///
/// # Errors
/// When the system refuses the thread.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let name = format!("{}-monitor", shared.config.thread_name);
    let builder = thread::Builder::new().name(name);
    threads::spawn(builder, shared, |shared| {
        or_abort(|| Monitor::new(shared, shared.timing.time.clock()).watch());
    })
}

struct Monitor<'a, C> {
    shared: &'a Arc<Shared>,
    clock: C,
    /// A sample of each worker and spare.
    samples: Vec<WorkerSample>,
    interval: Duration,
    /// For how long nothing has happened.
    quiet: Duration,
    /// Whether at the last look no thread waited for the timer due next.
    is_uncovered: bool,
    /// Whether at the last look no thread had been in the driver since the look before.
    is_left: bool,
    /// How often a thread had been there by then.
    visits: u64,
}

/// The findings of a look.
#[derive(Default)]
struct Look {
    /// Whether turns have begun since the last look.
    is_active: bool,
    /// Whether a process waits behind a turn begun before the last look.
    is_kept: bool,
}

impl<'a, C: Clock> Monitor<'a, C> {
    fn new(shared: &'a Arc<Shared>, clock: C) -> Self {
        Self {
            shared,
            clock,
            samples: Vec::new(),
            interval: shared.config.hand_off_delay,
            quiet: Duration::ZERO,
            is_uncovered: false,
            is_left: false,
            visits: 0,
        }
    }

    /// Watches until the scheduler halts.
    fn watch(&mut self) {
        let shared = self.shared;
        while !shared.shutdown.is_halted() {
            self.look();
            if self.quiet < QUIET {
                shared.queues.idle.monitor_wait(self.interval);
            } else {
                self.report_when_idle();
                shared.probe.watching();
                let stay_awake = || self.has_to_stay_awake();
                let mut ready = Vec::new();
                shared.queues.idle.monitor_sleep(stay_awake, |parker| {
                    shared.probe.dozing();
                    let now = nanos(self.clock.now());
                    let until = self.dozes_until();
                    let time = until.map(|until| Duration::from_nanos(until.saturating_sub(now)));
                    let blocked;
                    (blocked, ready) = shared.block(parker, time, || true);
                    blocked.has_token
                });
                ready.into_iter().for_each(|token| shared.schedule(token));
                self.begin_to_watch();
                shared.queues.idle.monitor_wait(self.interval);
            }
        }
    }

    /// Writes the reports left without a thread. While all workers sleep, no step holds a resource
    /// needed by the subscriber.
    fn report_when_idle(&self) {
        if self.shared.queues.idle.snapshot().sleeping as usize
            == self.shared.worker_slots.workers()
        {
            self.shared.report_here();
        }
    }

    /// Returns whether something is left to watch after a quiet time.
    fn has_to_stay_awake(&self) -> bool {
        self.shared.has_work() || self.shared.shutdown.is_halted()
    }

    /// Returns until when the monitor may sleep: without a limit while the timer waiter waits for
    /// the timer due next, and else until the timer is late.
    fn dozes_until(&self) -> Option<u64> {
        let shared = self.shared;
        let uncovered = (shared.timing.timer_waiter.is_used())
            .then(|| shared.timing.timer_waiter.uncovered(shared.shards_in_use()))
            .flatten();
        uncovered.map(|due| due.saturating_add(LATE_AT_MONITOR))
    }

    /// Begins to watch again, after a sleep and a wake-up.
    fn begin_to_watch(&mut self) {
        self.quiet = Duration::ZERO;
        self.interval = self.shared.config.hand_off_delay;
        // A process pushed just now has the delay before it.
        self.look_at_turns(self.clock.now());
    }

    fn look(&mut self) {
        self.shared.probe.watching();
        let now = self.clock.now();
        self.shared.timing.time.go_on(now);
        let look = self.look_at_turns(now);
        self.look_at_timers(now);
        self.look_at_driver();
        if look.is_kept && self.shared.queues.idle.notify() {
            self.interval = self.shared.config.hand_off_delay;
        } else {
            self.interval = (2 * self.interval).min(LONGEST_LOOK);
        }
        let idle = self.shared.queues.idle.snapshot();
        let is_waiting = look.is_kept || self.shared.has_work();
        if is_waiting && idle.sleeping == 0 && idle.searching == 0 {
            self.replace(now);
        }
        self.shared.start_reporter();
        if look.is_active || is_waiting {
            self.quiet = Duration::ZERO;
        } else if idle.sleeping as usize == self.shared.worker_slots.workers() {
            self.quiet = QUIET;
        } else {
            self.quiet += self.interval;
        }
        self.shared.probe.watched();
    }

    /// Fires late timers, and wakes a sleeper to wait for the next.
    fn look_at_timers(&mut self, now: Duration) {
        let shared = self.shared;
        if !shared.timing.timer_waiter.is_used() {
            return;
        }
        shared.fire_all(nanos(now).saturating_sub(LATE_AT_MONITOR));
        // A worker between two turns goes to sleep by itself, or notifies another.
        let is_uncovered = shared
            .timing
            .timer_waiter
            .uncovered(shared.shards_in_use())
            .is_some();
        if is_uncovered && mem::replace(&mut self.is_uncovered, is_uncovered) {
            shared.queues.idle.notify();
        }
        self.is_uncovered = is_uncovered;
    }

    /// Looks in the driver when no thread has, and wakes a sleeper to wait there.
    fn look_at_driver(&mut self) {
        let shared = self.shared;
        let Some(driven) = &shared.timing.driven else {
            return;
        };
        // A worker that comes back again and again needs no other worker there.
        let is_left = driven.waiter.is_free() && self.visits == driven.waiter.visits();
        if is_left {
            let ready = shared.look_in_driver(|| ());
            ready.into_iter().for_each(|token| shared.schedule(token));
        }
        self.visits = driven.waiter.visits();
        if mem::replace(&mut self.is_left, is_left) && is_left {
            shared.queues.idle.notify();
        }
    }

    fn look_at_turns(&mut self, now: Duration) -> Look {
        let mut look = Look {
            is_kept: !self.shared.queues.arrivals.is_empty(),
            ..Look::default()
        };
        let stealers = self.shared.stealers();
        // New workers are sampled from now on.
        (self.samples).resize_with(stealers.len(), || {
            let mut sample = WorkerSample::default();
            sample.begin(now);
            sample
        });
        for (worker, (sample, stealer)) in self.samples.iter_mut().zip(stealers).enumerate() {
            let turns = self.shared.counters.of(Some(worker)).turns.get();
            if turns == sample.turns {
                look.is_kept |= !stealer.is_empty();
                if self.shared.worker_slots.is_looking(worker) {
                    // Its next turn begins after this; its thread may have ended.
                    sample.begin(now);
                    sample.close_files();
                }
            } else {
                look.is_active = true;
                let announcements = self.shared.worker_slots.announcements(worker);
                sample.begin_turn(turns, announcements, now);
            }
        }
        look
    }

    /// Has workers replaced whose steps keep others waiting.
    fn replace(&mut self, now: Duration) {
        let (shared, config) = (self.shared, &self.shared.config);
        for (worker, sample) in self.samples.iter_mut().enumerate() {
            let lasted = now.saturating_sub(sample.since);
            if lasted == Duration::ZERO || shared.worker_slots.is_looking(worker) {
                continue;
            }
            if lasted >= config.chain_limit {
                shared.worker_slots.set_overdue(worker, sample.turns);
            }
            if shared.worker_slots.is_replaced(worker) {
                if !sample.is_reported && sample.computes(shared, worker, now) {
                    sample.is_reported = report_replaced(shared, worker, sample, lasted);
                }
                // Any number of workers may have been replaced.
                sample.close_files();
                continue;
            }
            self.interval = self.interval.min(CLOSE_LOOK);
            let Some(fault) = sample.fault(shared, worker, now) else {
                continue;
            };
            // None where the worker runs no process: a destructor may block it between two turns.
            let step = sample.notice(shared, worker, fault, lasted);
            if !sample.is_current(shared, worker) {
                // The worker has begun another turn, and the step of this turn is not to blame.
                continue;
            }
            let is_reported = step.is_some();
            if shared.replace_worker(worker, step) {
                sample.is_reported = is_reported;
                sample.close_files();
                count(shared, fault.0);
                if !sample.is_current(shared, worker) {
                    shared.reporting.long_steps.end(worker);
                }
            }
        }
    }
}

/// Reports the step of an already replaced worker, because the step computes for long. Returns
/// whether the worker was still in the same turn.
fn report_replaced(
    shared: &Arc<Shared>,
    worker: usize,
    sample: &WorkerSample,
    lasted: Duration,
) -> bool {
    let fault = (LongStepKind::Computing, false);
    let Some(noticed) = sample.notice(shared, worker, fault, lasted) else {
        return false;
    };
    let pid = noticed.step.pid;
    let is_in_turn = || shared.is_in_turn(worker, sample.turns, pid);
    if !is_in_turn() {
        return false;
    }
    shared.reporting.long_steps.add(noticed.clone());
    if !is_in_turn() {
        // The worker may have ended the step before the step was in the record.
        shared.reporting.long_steps.end(worker);
    }
    count(shared, LongStepKind::Computing);
    shared.report_step(noticed);
    true
}

fn count(shared: &Shared, kind: LongStepKind) {
    let counters = shared.counters.of(None);
    match kind {
        LongStepKind::Blocked => counters.blocked_steps.bump(),
        LongStepKind::Computing => counters.long_steps.bump(),
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
