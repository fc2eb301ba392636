//! Parts of a scheduler besides its processes: workers, timers, long steps, alarms, dead letters.

use crate::alarms::{Alarm, Board};
#[cfg(feature = "serve")]
use crate::letters::{self, KeptLetter};
use crate::observer::Observer;
use ganger_sched::{LongStep, TimerStats, WorkerStats, WorkerTimes};

/// The counts of a worker, and the shares of its time: see [`Observer::workers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Worker {
    /// The counts since the scheduler was built.
    pub counts: WorkerStats,
    /// The time since the worker's start, by its use; `None` where the scheduler does not count.
    pub times: Option<WorkerTimes>,
}

impl Observer {
    /// Returns the workers, and the spares as soon as there was a spare. All counts are cumulative:
    /// the difference of two answers is a rate.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_sched::{Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().workers(2).observe(Observe::Counts).start()?;
    /// let observer = Observer::of(&scheduler);
    /// let workers = observer.workers();
    /// assert!(workers.len() >= 2 && workers[0].times.is_some());
    /// assert_eq!(observer.timers().pending, 0);
    /// assert!(observer.long_steps().is_empty() && observer.alarms().is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn workers(&self) -> Vec<Worker> {
        let times = self.handle().worker_times();
        let counts = self.handle().worker_stats().into_iter().enumerate();
        let worker = |(place, counts)| Worker {
            counts,
            times: times.get(place).copied(),
        };
        counts.map(worker).collect()
    }

    /// Returns the counts of the timers.
    #[must_use]
    pub fn timers(&self) -> TimerStats {
        self.handle().timers().stats()
    }

    /// Returns the last steps with processes waiting behind them, at most 16, the oldest first.
    #[must_use]
    pub fn long_steps(&self) -> Vec<LongStep> {
        self.handle().long_steps()
    }

    /// Returns the raised alarms, the oldest first.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        Board::of(self.handle()).raised()
    }

    /// Returns the last dead letters, at most 100, the oldest first; `None` where the scheduler was
    /// built without [`keep_letters`](crate::keep_letters).
    #[cfg(feature = "serve")]
    #[must_use]
    pub fn dead_letters(&self) -> Option<Vec<KeptLetter>> {
        letters::last(self.handle())
    }
}
