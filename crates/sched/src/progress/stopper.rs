//! The requests to stop a scheduler, and the result of the stop.

use super::reaper_pool::ReaperPool;
use super::report::StopReport;
use crate::base::clock::Deadline;
use crate::base::stats::WorkerStats;
use ganger_sync::sync::{Mutex, lock};
use std::mem;
use std::time::Duration;

/// The shared state of the calls of `stop` and `begin_stop`.
#[derive(Default)]
pub(crate) struct Stopper {
    asked: Mutex<Option<Asked>>,
    /// Held by a call while it does the work.
    pub(crate) done: Mutex<Option<Done>>,
    pub(crate) reapers: ReaperPool,
    /// Called once the scheduler has halted, whether or not a worker returns.
    bells: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

/// The requests of these calls.
struct Asked {
    /// The earliest of their deadlines.
    deadline: Deadline,
    /// The counts at the first request.
    before: WorkerStats,
    /// Whether a call does the work, or a thread started by it.
    is_served: bool,
}

/// The result of the work.
pub(crate) struct Done {
    pub(crate) report: StopReport,
    /// The number of remaining reapers: later calls do not wait for them.
    pub(crate) reapers: usize,
}

impl Stopper {
    /// Has `ring` called by [`ring`](Self::ring). `ring` is short, and calls no user's code.
    #[cfg(feature = "signals")]
    pub(crate) fn add_bell(&self, ring: impl Fn() + Send + 'static) {
        lock(&self.bells).push(Box::new(ring));
    }

    /// Rings the bells, each once.
    pub(crate) fn ring(&self) {
        let bells = mem::take(&mut *lock(&self.bells));
        bells.iter().for_each(|ring| ring());
    }

    /// Requests a stop by the deadline. `count` returns the present counts.
    pub(crate) fn ask(&self, deadline: Deadline, count: impl FnOnce() -> WorkerStats) {
        let mut asked = lock(&self.asked);
        match &mut *asked {
            Some(asked) => asked.deadline = asked.deadline.earlier(deadline),
            None => {
                *asked = Some(Asked {
                    deadline,
                    before: count(),
                    is_served: false,
                });
            }
        }
    }

    /// Returns whether the caller should have the work done: no other call has it done.
    pub(crate) fn claim(&self) -> bool {
        let mut asked = lock(&self.asked);
        let asked = asked.as_mut();
        asked.is_some_and(|asked| !mem::replace(&mut asked.is_served, true))
    }

    /// Lets the deadline pass.
    pub(crate) fn expire(&self) {
        if let Some(asked) = &mut *lock(&self.asked) {
            asked.deadline = Deadline::after(Duration::ZERO);
        }
    }

    /// Returns the earliest requested deadline.
    pub(crate) fn deadline(&self) -> Deadline {
        let asked = lock(&self.asked);
        let none = || Deadline::after(Duration::ZERO);
        asked.as_ref().map_or_else(none, |asked| asked.deadline)
    }

    /// Returns the time left until the deadline, if a stop has been requested.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        (lock(&self.asked).as_ref()).map(|asked| asked.deadline.remaining())
    }

    /// Returns the counts when a stop was requested first, if one was.
    pub(crate) fn before(&self) -> Option<WorkerStats> {
        lock(&self.asked).as_ref().map(|asked| asked.before)
    }
}
