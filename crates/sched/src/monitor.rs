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
//!    computed for long: a spare takes the worker's place (`crew.rs`), and the step is reported; at DEBUG
//!    if it has said that it is about to block.
//! 3. Nobody is free although the place of a worker has been taken, because its step has said that it is
//!    about to block, and that step computes for long: it is reported as well. Not while it is about to
//!    block, for then it has said so.
//!
//! **How often it looks.** First after the hand-off delay, then at intervals that double, until it
//! finds a step that has kept something waiting. It takes two looks, one that sees the turn begun and
//! one that sees it unchanged: so a process that is left to a worker whose steps were short all along
//! waits for up to twice [`LONGEST`], should that step be long. It sleeps while no worker works and
//! nothing waits; whoever pushes something that waits wakes it.

#[cfg(feature = "sim")]
pub(crate) mod simulated;
mod watched;

use self::watched::Watched;
use crate::clock::{Clock, MonotonicClock};
use crate::contain::or_abort;
use crate::counted;
use crate::reports::LongStepKind;
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
    let builder = thread::Builder::new().name(name);
    counted::spawn(builder, shared, |shared| {
        or_abort(|| Monitor::new(shared, MonotonicClock::new()).watch());
    })
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
        // Those that are new are seen from now on.
        (self.watched).resize_with(stealers.len(), || Watched::new(0, 0, now));
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
                *watched = Watched::new(turns, self.shared.crew.announcements(worker), now);
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

#[cfg(all(test, not(loom)))]
mod tests;
