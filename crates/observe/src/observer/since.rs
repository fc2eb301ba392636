//! Cumulative counters between two answers.
//!
//! **Problem.** A reader wants rates. If a look reset the counters, two readers would take each
//! other's growth away.
//!
//! **Protocol.** Each answer has a number higher than the numbers before, and the observer keeps
//! the counters of the last [`KEPT`] answers. A reader gives the number of its last answer, and
//! gets the growth since. If the observer has dropped that answer, the reader begins anew.

use super::Observer;
use ganger_sched::{TimerStats, WorkerStats};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The number of kept answers.
const KEPT: usize = 64;

/// The growth of a scheduler's counters since an earlier answer: see [`Observer::since`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// The number of this answer.
    pub sequence: u64,
    /// The time between the two answers.
    pub time: Duration,
    /// The counts of all threads together.
    pub total: WorkerStats,
    /// The counts of the timers; `pending` is the number at this moment.
    pub timers: TimerStats,
    /// The new events that steps have been given; `None` where the scheduler does not count.
    pub events: Option<u64>,
}

/// The counters of the last answers since the scheduler was built, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<VecDeque<Counters>>);

impl Observer {
    /// Returns the growth of the counters since the answer with this number, and since the
    /// scheduler was built for the number 0. `None` where this observer and its copies have given
    /// no such answer, or more than 64 since.
    ///
    /// Readers with the same observer do not disturb each other. No worker waits meanwhile.
    /// O(workers).
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_proc_api::actor_fn;
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let observer = Observer::of(&scheduler);
    /// let first = observer.since(0).unwrap();
    /// let ends = scheduler.spawn(actor_fn(|_, (): (), out| Ok(out.done(()))))?;
    /// ends.send(())?;
    /// ends.wait();
    /// let later = observer.since(first.sequence).unwrap();
    /// assert_eq!((later.total.started, later.total.done), (1, 1));
    /// assert!(observer.since(4711).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn since(&self, sequence: u64) -> Option<Counters> {
        let answers = &self.answers.0;
        let mut kept = answers.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = match sequence {
            0 => None,
            _ => Some(*kept.iter().find(|it| it.sequence == sequence)?),
        };
        let handle = self.handle();
        let now = Counters {
            sequence: kept.back().map_or(1, |it| it.sequence + 1),
            time: Duration::from_nanos(handle.now().as_nanos()),
            total: handle.stats().total,
            timers: handle.timers().stats(),
            events: handle.events(),
        };
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(now);
        Some(earlier.map_or(now, |earlier| now.after(&earlier)))
    }
}

impl Counters {
    /// Returns the growth of cumulative counters.
    fn after(self, earlier: &Self) -> Self {
        let mut timers = self.timers;
        timers.armed = timers.armed.saturating_sub(earlier.timers.armed);
        timers.fired = timers.fired.saturating_sub(earlier.timers.fired);
        timers.cancelled = timers.cancelled.saturating_sub(earlier.timers.cancelled);
        timers.refused = timers.refused.saturating_sub(earlier.timers.refused);
        let events = self.events.zip(earlier.events);
        Self {
            time: self.time.saturating_sub(earlier.time),
            total: self.total.since(&earlier.total),
            timers,
            events: events.map(|(now, before)| now.saturating_sub(before)),
            ..self
        }
    }
}
