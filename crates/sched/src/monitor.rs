//! The thread that watches the workers: it tells the time, and notices steps that keep others waiting.
//!
//! **Problem.** A step that wakes one process leaves it to its own worker, which is about to be free
//! and has the data in its cache; to wake another worker for it costs more than most steps. Should
//! the step go on, though, somebody has to notice. And a worker that rotates after 10 ms has to know
//! the time, which costs as much as a step.
//!
//! **Rejected.** Each worker looking at the clock at each pick. A timer for each step. Looking every
//! 50 us for ever: waking takes a few microseconds of a processor, on virtual machines more than
//! ten.
//!
//! **At each look**
//! 1. A worker that has something in its deque and has begun no turn since the last look: a sleeper
//!    is woken, which will steal it.
//! 2. Processes wait, nobody sleeps or searches, and a worker's step has blocked its thread, or has
//!    lasted for long: a spare takes the worker's place (`crew.rs`), and the step is reported; at DEBUG if it
//!    has said that it is about to block.
//! 3. Nobody is free although the place of a worker has been taken, because its step has said that it is
//!    about to block, and that step computes for long: it is reported as well. Not while it is about to
//!    block, for then it has said so.
//!
//! **How often it looks.** First after the hand-off delay, then at intervals that double, until it
//! finds a step that has kept something waiting. It takes two looks, one that sees the turn begun and
//! one that sees it unchanged: so a process that is left to a worker whose steps were short all along
//! waits for up to twice [`LONGEST`], should that step be long. It sleeps while no worker works and
//! nothing waits; whoever pushes something that waits wakes it.

use crate::clock::{Clock, MonotonicClock};
use crate::crew::Relief;
use crate::reaper::Counted;
use crate::reports::{Line, LongStep, LongStepKind};
use crate::shared::Shared;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The longest time between two looks.
pub(crate) const LONGEST: Duration = Duration::from_millis(2);

/// The longest time between two looks at a step that may have blocked its thread.
const CLOSE: Duration = Duration::from_micros(500);

/// For how long nothing has to happen before it goes to sleep.
const QUIET: Duration = Duration::from_millis(10);

/// The time as the monitor has read it last. Costs a load, and stands still while nothing waits.
#[derive(Default)]
pub(crate) struct CoarseTime(AtomicU64);

impl CoarseTime {
    /// In nanoseconds since some fixed moment.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        // Ordering: Relaxed: nothing is read on the strength of it.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, now: Duration) {
        // Ordering: Relaxed, as above.
        self.0.store(nanos(now), Ordering::Relaxed);
    }
}

/// A duration in nanoseconds, up to some centuries.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Starts the thread.
///
/// # Errors
/// When the system refuses one.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<()> {
    let name = format!("{}-monitor", shared.config.thread_name);
    let counted = Counted::new(shared);
    let mine = Arc::clone(shared);
    let spawned = thread::Builder::new().name(name).spawn(move || {
        let _counted = counted;
        Monitor::new(&mine, MonotonicClock::new()).watch();
    });
    spawned.map(drop)
}

struct Monitor<'a, C> {
    shared: &'a Arc<Shared>,
    clock: C,
    /// What was seen of each worker and spare.
    watched: Vec<Watched>,
    interval: Duration,
    /// For how long nothing has happened.
    quiet: Duration,
}

/// A thread of the scheduler, as it was at the last look.
#[derive(Clone, Copy, Default)]
struct Watched {
    /// The turns that it had begun.
    turns: u64,
    /// When that was seen first.
    since: Duration,
    /// Whether it was asleep in its turn.
    was_asleep: bool,
    /// How long its thread had computed when the turn was first looked at closely, if the system says.
    computed: Option<Option<Duration>>,
    /// Since when it computes, for all that is known: what it does while it is about to block does not count.
    computes_since: Duration,
    /// What its steps had announced then.
    announcements: u64,
    /// The turn has been reported.
    is_reported: bool,
}

/// What a look has found.
#[derive(Default)]
struct Look {
    /// Turns have begun since the last one.
    is_active: bool,
    /// Something waits behind a turn that had begun before the last one.
    is_kept: bool,
}

impl<'a, C: Clock> Monitor<'a, C> {
    fn new(shared: &'a Arc<Shared>, clock: C) -> Self {
        Self {
            shared,
            clock,
            watched: Vec::new(),
            interval: shared.config.hand_off_delay,
            quiet: Duration::ZERO,
        }
    }

    /// Until the scheduler halts.
    fn watch(&mut self) {
        let shared = self.shared;
        while !shared.shutdown.is_halted() {
            self.look();
            if self.quiet < QUIET {
                shared.idle.nap(self.interval);
            } else {
                shared.check.begin_look();
                let stay_awake = || self.has_to_stay_awake();
                shared.idle.doze(stay_awake, || shared.check.rest());
                self.begin_to_watch();
                shared.idle.nap(self.interval);
            }
        }
    }

    /// There is something to watch, though all was quiet.
    fn has_to_stay_awake(&self) -> bool {
        self.shared.has_work() || self.shared.shutdown.is_halted()
    }

    /// It has slept because there was nothing to watch, and has been woken.
    fn begin_to_watch(&mut self) {
        self.quiet = Duration::ZERO;
        self.interval = self.shared.config.hand_off_delay;
        // What has been pushed just now has the delay before it.
        self.look_at_turns(self.clock.now());
    }

    fn look(&mut self) {
        self.shared.check.begin_look();
        let now = self.clock.now();
        self.shared.time.set(now);
        let look = self.look_at_turns(now);
        if look.is_kept && self.shared.idle.notify() {
            self.interval = self.shared.config.hand_off_delay;
        } else {
            self.interval = (2 * self.interval).min(LONGEST);
        }
        let idle = self.shared.idle.snapshot();
        let is_waiting = look.is_kept || self.shared.has_work();
        if is_waiting && idle.sleeping == 0 && idle.searching == 0 {
            self.relieve(now);
        }
        if look.is_active || is_waiting {
            self.quiet = Duration::ZERO;
        } else if idle.sleeping as usize == self.shared.crew.workers() {
            self.quiet = QUIET;
        } else {
            self.quiet += self.interval;
        }
        self.shared.check.end_look();
    }

    fn look_at_turns(&mut self, now: Duration) -> Look {
        let mut look = Look::default();
        let stealers = self.shared.stealers();
        self.watched.resize(stealers.len(), Watched::default());
        for (worker, (watched, stealer)) in self.watched.iter_mut().zip(stealers).enumerate() {
            let turns = self.shared.counters.of(Some(worker)).turns.get();
            if turns == watched.turns {
                look.is_kept |= !stealer.is_empty();
                if self.shared.crew.is_looking(worker) {
                    // Its next turn begins after this.
                    watched.begin(now);
                }
            } else {
                look.is_active = true;
                *watched = Watched {
                    turns,
                    announcements: self.shared.crew.announcements(worker),
                    ..Watched::default()
                };
                watched.begin(now);
            }
        }
        look
    }

    /// Has workers relieved whose steps keep others waiting.
    fn relieve(&mut self, now: Duration) {
        let (shared, config) = (self.shared, &self.shared.config);
        for (worker, watched) in self.watched.iter_mut().enumerate() {
            let lasted = now.saturating_sub(watched.since);
            if lasted == Duration::ZERO || shared.crew.is_looking(worker) {
                continue;
            }
            if lasted >= config.chain_limit {
                shared.crew.set_overdue(worker, watched.turns);
            }
            if shared.crew.is_relieved(worker) {
                if !watched.is_reported && watched.computes(shared, worker, now) {
                    watched.is_reported = watched.report(shared, worker, lasted);
                }
                continue;
            }
            self.interval = self.interval.min(CLOSE);
            let Some((kind, is_announced)) = watched.fault(shared, worker, now) else {
                continue;
            };
            // A worker that runs no process may be reporting, to a subscriber that waits: another report
            // would wait as well.
            let relief = watched.relief(shared, worker, (kind, is_announced), lasted);
            if !watched.is_current(shared, worker) {
                // It has gone on meanwhile: this would be said of the next turn.
                continue;
            }
            let is_reported = relief.is_some();
            if shared.crew.relieve(shared, worker, relief) {
                watched.is_reported = is_reported;
                count(shared, kind);
                if !watched.is_current(shared, worker) {
                    shared.reports.end(worker);
                }
            }
        }
    }
}

fn count(shared: &Shared, kind: LongStepKind) {
    let counters = shared.counters.of(None);
    match kind {
        LongStepKind::Blocked => counters.blocked_steps.bump(),
        LongStepKind::Computing => counters.long_steps.bump(),
    }
}

#[cfg(feature = "sim")]
pub(crate) mod simulated;

impl Watched {
    /// The turn has not begun before now.
    fn begin(&mut self, now: Duration) {
        (self.since, self.computes_since) = (now, now);
        (self.was_asleep, self.computed) = (false, None);
    }

    /// Whether the worker is still in that turn, or has not begun another since.
    fn is_current(&self, shared: &Shared, worker: usize) -> bool {
        shared.counters.of(Some(worker)).turns.get() == self.turns
    }

    /// What is wrong with the turn, if something is, and whether its step has said so.
    fn fault(
        &mut self,
        shared: &Shared,
        worker: usize,
        now: Duration,
    ) -> Option<(LongStepKind, bool)> {
        let crew = &shared.crew;
        let was_asleep = self.was_asleep;
        self.was_asleep = crew.is_asleep(worker) == Some(true);
        let lasted = now.saturating_sub(self.since);
        let blocks = was_asleep && self.was_asleep && lasted >= shared.config.blocked_step;
        let is_announced = is_odd(crew.announcements(worker));
        if blocks || is_announced {
            return Some((LongStepKind::Blocked, is_announced));
        }
        self.computes(shared, worker, now)
            .then_some((LongStepKind::Computing, false))
    }

    /// Whether it has computed for long, without a word.
    fn computes(&mut self, shared: &Shared, worker: usize, now: Duration) -> bool {
        let announcements = shared.crew.announcements(worker);
        if self.announcements != announcements {
            self.announcements = announcements;
            (self.computes_since, self.computed) = (now, None);
        }
        if is_odd(announcements) {
            return false;
        }
        // Not by the clock on the wall: where many threads share a processor all steps would take long,
        // and more threads would make them longer.
        let computed = shared.crew.computed(worker);
        let before = *self.computed.get_or_insert(computed);
        let computed = match (before, computed) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            _ => now.saturating_sub(self.computes_since),
        };
        computed >= shared.config.long_step
    }

    /// What there is to report of the turn, when a process runs.
    fn relief(
        &self,
        shared: &Shared,
        worker: usize,
        (kind, is_announced): (LongStepKind, bool),
        lasted: Duration,
    ) -> Option<Relief> {
        let pid = shared.running_on(worker)?;
        let step = LongStep {
            pid,
            method: shared.registry.method(pid.id()),
            worker,
            kind,
            is_announced,
            lasted,
            is_over: false,
            backtrace: None,
        };
        Some(Relief {
            line: shared.reports.line(&step, shared.config.report_interval),
            turn: self.turns,
            step,
        })
    }

    /// Reports the turn of a worker whose place has been taken already, because it computes for long. Returns
    /// whether it was still in that turn.
    fn report(&self, shared: &Shared, worker: usize, lasted: Duration) -> bool {
        let relief = self.relief(shared, worker, (LongStepKind::Computing, false), lasted);
        let is_in_turn = |relief: &Relief| shared.is_in_turn(worker, self.turns, relief.step.pid);
        let Some(relief) = relief.filter(is_in_turn) else {
            return false;
        };
        let Relief { step, turn, line } = relief.clone();
        let interval = shared.config.report_interval;
        shared.reports.add(step, turn, line, interval);
        if !is_in_turn(&relief) {
            // The worker may have said that it is over before it was known.
            shared.reports.end(worker);
        }
        count(shared, LongStepKind::Computing);
        if line != Line::Suppress {
            shared.crew.have_told(relief);
            // Who sleeps since the last look may not have seen it.
            shared.idle.notify();
        }
        true
    }
}

/// See [`Crew::announcements`](crate::crew::Crew::announcements).
fn is_odd(announcements: u64) -> bool {
    !announcements.is_multiple_of(2)
}

#[cfg(all(test, not(loom)))]
mod tests;
