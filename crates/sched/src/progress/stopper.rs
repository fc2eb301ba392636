//! What the calls that stop a scheduler ask for, and what the stop comes to.

use super::reaper_pool::ReaperPool;
use super::report::StopReport;
use crate::base::clock::Deadline;
use crate::base::stats::WorkerStats;
use ganger_sync::sync::{Mutex, lock};
use std::mem;
use std::time::Duration;

/// What the calls of `stop` and `begin_stop` share.
#[derive(Default)]
pub(crate) struct Stopper {
    asked: Mutex<Option<Asked>>,
    /// Held by the call that does the work, while it does.
    pub(crate) done: Mutex<Option<Done>>,
    pub(crate) reapers: ReaperPool,
    /// Called once the scheduler has halted, whether or not a worker returns.
    bells: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

/// What these calls have asked for.
struct Asked {
    /// The earliest of their deadlines.
    deadline: Deadline,
    /// What had been counted at the first of them.
    before: WorkerStats,
    /// One of them does the work, or a thread that it starts.
    is_served: bool,
}

/// What the work has come to.
pub(crate) struct Done {
    pub(crate) report: StopReport,
    /// How many reapers were left: later calls do not wait for those.
    pub(crate) reapers: usize,
}

impl Stopper {
    /// Has `ring` called by [`ring`](Self::ring). It is short, and calls nothing of users.
    #[cfg(feature = "signals")]
    pub(crate) fn add_bell(&self, ring: impl Fn() + Send + 'static) {
        lock(&self.bells).push(Box::new(ring));
    }

    /// Rings the bells, each once.
    pub(crate) fn ring(&self) {
        let bells = mem::take(&mut *lock(&self.bells));
        bells.iter().for_each(|ring| ring());
    }

    /// A call asks for a stop by that deadline. `count` says what has been counted so far.
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

    /// Whether the call that asks is to have the work done: no other one has it done.
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

    /// The earliest deadline that a call has asked for.
    pub(crate) fn deadline(&self) -> Deadline {
        let asked = lock(&self.asked);
        let none = || Deadline::after(Duration::ZERO);
        asked.as_ref().map_or_else(none, |asked| asked.deadline)
    }

    /// How long it is until that deadline, if a call has asked for a stop.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        (lock(&self.asked).as_ref()).map(|asked| asked.deadline.remaining())
    }

    /// What had been counted when a stop was asked for first, if one was.
    pub(crate) fn before(&self) -> Option<WorkerStats> {
        lock(&self.asked).as_ref().map(|asked| asked.before)
    }
}
