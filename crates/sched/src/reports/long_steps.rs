//! The record of steps that have kept other processes waiting: the last steps, and the longest.
//!
//! The monitor adds a step when it takes notice of it. The step's worker marks it as over. Both are
//! rare, so a single lock guards the record.

use crate::base::clock::Since;
use ganger_proc_api::{Pid, Symbol};
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How many of the last steps are kept.
const KEPT: usize = 16;

/// A step that has kept other processes waiting until a spare thread took its worker's place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongStep {
    /// The process.
    pub pid: Pid,
    /// The entry point of its process; `None` when the process had ended before the look-up.
    pub method: Option<Symbol>,
    /// The thread of the step: its place in [`Handle::worker_stats`](crate::Handle::worker_stats).
    pub worker: usize,
    /// The fault of the step.
    pub kind: LongStepKind,
    /// Whether it had said so: it was inside
    /// [`Context::blocking`](ganger_proc_api::Context::blocking) when it was noticed.
    pub is_announced: bool,
    /// How long it has lasted: in all when it is over, else until it was noticed.
    pub lasted: Duration,
    /// Whether it is over.
    pub is_over: bool,
    /// The place of the step at its report, if [`Builder`](crate::Builder) asks for backtraces and
    /// the report could take one: a line for each function, the innermost first. Only for steps
    /// with a line in the log.
    pub backtrace: Option<Arc<str>>,
}

/// The fault of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LongStepKind {
    /// The step blocks its thread.
    Blocked,
    /// The step computes for long.
    Computing,
}

/// A step, and the turn of its worker.
#[derive(Debug, Clone)]
pub(crate) struct NoticedStep {
    /// The number of the worker's turn.
    pub(crate) turn: u64,
    pub(crate) step: LongStep,
}

#[derive(Default)]
pub(crate) struct LongSteps(Mutex<Record>);

#[derive(Default)]
struct Record {
    /// The oldest first.
    last: VecDeque<NoticedStep>,
    /// Steps under way: worker, turn, beginning.
    open: Vec<(usize, u64, Since)>,
    longest: Duration,
}

impl Record {
    /// Returns the worker's step in this turn, if it is among the last.
    fn find(&mut self, worker: usize, turn: u64) -> Option<&mut LongStep> {
        let mut last = self.last.iter_mut();
        let found = last.find(|it| (it.step.worker, it.turn) == (worker, turn));
        found.map(|it| &mut it.step)
    }
}

impl LongSteps {
    /// Adds a step under way.
    pub(crate) fn add(&self, noticed: NoticedStep) {
        let mut record = lock(&self.0);
        let NoticedStep { turn, step } = &noticed;
        let since = Since::before(step.lasted);
        record.open.push((step.worker, *turn, since));
        record.last.push_back(noticed);
        if record.last.len() > KEPT {
            record.last.pop_front();
        }
    }

    /// Ends the worker's step, and each of its earlier steps.
    pub(crate) fn end(&self, worker: usize) {
        let mut record = lock(&self.0);
        while let Some(place) = record.open.iter().position(|&(it, ..)| it == worker) {
            let (_, turn, since) = record.open.swap_remove(place);
            let lasted = since.elapsed();
            record.longest = record.longest.max(lasted);
            if let Some(step) = record.find(worker, turn) {
                (step.lasted, step.is_over) = (lasted, true);
            }
        }
    }

    /// Sets the place of the worker's step in this turn.
    pub(crate) fn set_backtrace(&self, worker: usize, turn: u64, backtrace: &Arc<str>) {
        if let Some(step) = lock(&self.0).find(worker, turn) {
            step.backtrace = Some(Arc::clone(backtrace));
        }
    }

    /// Returns the last steps, the oldest first.
    pub(crate) fn last(&self) -> Vec<LongStep> {
        let record = lock(&self.0);
        record.last.iter().map(|it| it.step.clone()).collect()
    }

    /// Returns the longest finished step.
    pub(crate) fn longest(&self) -> Duration {
        lock(&self.0).longest
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn step(worker: usize) -> NoticedStep {
        let step = LongStep {
            pid: Pid::new(HostName::new("test").unwrap(), 1),
            method: None,
            worker,
            kind: LongStepKind::Blocked,
            is_announced: false,
            lasted: HOUR,
            is_over: false,
            backtrace: None,
        };
        NoticedStep { turn: 0, step }
    }

    #[test]
    fn the_last_are_kept_and_the_longest_is_remembered() {
        let steps = LongSteps::default();
        (0..KEPT + 3).for_each(|worker| steps.add(step(worker)));
        assert_eq!(steps.longest(), Duration::ZERO, "none is over");
        let workers = || -> Vec<_> {
            let last = steps.last().into_iter();
            last.map(|step| (step.worker, step.is_over)).collect()
        };
        let expected: Vec<_> = (3..KEPT + 3).map(|worker| (worker, false)).collect();
        assert_eq!(workers(), expected);
        // A step already out of the last ones.
        steps.end(0);
        assert!(steps.longest() >= HOUR);
        steps.end(4);
        steps.end(4);
        assert_eq!(workers()[..3], [(3, false), (4, true), (5, false)]);
        assert_eq!(lock(&steps.0).open.len(), KEPT + 1);
    }
}
