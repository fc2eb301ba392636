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
//! **How often it looks.** First after the hand-off delay, then at intervals that double, until it
//! finds a step that has kept something waiting. So a process that is left to a worker whose steps
//! were short all along waits for up to [`LONGEST`], should that step be long. It sleeps while no
//! worker works and nothing waits; whoever pushes something that waits wakes it.

use crate::clock::{Clock, MonotonicClock};
use crate::reaper::Counted;
use crate::shared::Shared;
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The longest time between two looks.
const LONGEST: Duration = Duration::from_millis(2);

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

    fn set(&self, now: Duration) {
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
        Monitor::new(&mine).watch();
    });
    spawned.map(drop)
}

struct Monitor<'a> {
    shared: &'a Shared,
    clock: MonotonicClock,
    /// The steps that each worker had begun at the last look.
    steps: Vec<u64>,
    interval: Duration,
    /// For how long nothing has happened.
    quiet: Duration,
}

impl<'a> Monitor<'a> {
    fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            clock: MonotonicClock::new(),
            steps: vec![0; shared.stealers.len()],
            interval: shared.config.hand_off_delay,
            quiet: Duration::ZERO,
        }
    }

    /// Until the scheduler halts.
    fn watch(&mut self) {
        while !self.shared.shutdown.is_halted() {
            self.look();
            if self.quiet < QUIET {
                self.shared.idle.nap(self.interval);
            } else {
                let stay_awake = || self.shared.has_work() || self.shared.shutdown.is_halted();
                self.shared.idle.doze(stay_awake);
                self.quiet = Duration::ZERO;
                self.interval = self.shared.config.hand_off_delay;
                // What has been pushed just now has the delay before it.
                self.count_steps();
                self.shared.idle.nap(self.interval);
            }
        }
    }

    fn look(&mut self) {
        self.shared.time.set(self.clock.now());
        let (is_active, is_waiting) = self.count_steps();
        if is_waiting && self.shared.idle.notify() {
            self.interval = self.shared.config.hand_off_delay;
        } else {
            self.interval = (2 * self.interval).min(LONGEST);
        }
        let idle = self.shared.idle.snapshot();
        if is_active || is_waiting {
            self.quiet = Duration::ZERO;
        } else if idle.sleeping as usize == self.steps.len() {
            self.quiet = QUIET;
        } else {
            self.quiet += self.interval;
        }
    }

    /// Whether workers have begun steps since the last look, and whether something waits for one that
    /// has not.
    fn count_steps(&mut self) -> (bool, bool) {
        let (mut is_active, mut is_waiting) = (false, false);
        for (worker, seen) in self.steps.iter_mut().enumerate() {
            let steps = self.shared.counters.of(Some(worker)).steps.get();
            if steps == *seen {
                is_waiting |= !self.shared.stealers[worker].is_empty();
            } else {
                is_active = true;
            }
            *seen = steps;
        }
        (is_active, is_waiting)
    }
}
