//! What is known of steps that have kept others waiting: the last ones, the longest, and which of them
//! are worth a line in the log.
//!
//! **Problem.** A process that blocks its thread in each step would have a line in the log for each.
//! **Rejected.** One line a process: a crowd of processes does the same thing. **Rule.** A line a
//! method and interval; the next line says how many there were in between.
//!
//! The monitor writes when it has had a worker relieved, or when one that has been relieved before computes
//! for long, and the worker when its step is over; all are rare, so that a lock does.

use crate::clock::Since;
use crate::contain::log;
use ganger_proc_api::{Pid, Symbol};
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;
use tracing::field::display;

/// How many of the last steps are kept.
const KEPT: usize = 16;

/// How many methods are told apart; further ones have no lines of their own until an interval is over.
const METHODS: usize = 256;

/// A step that has kept other processes waiting, so that a spare thread took its worker's place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LongStep {
    /// The process.
    pub pid: Pid,
    /// The entry point that it was started with; none when it had ended by the time somebody looked.
    pub method: Option<Symbol>,
    /// The thread that it kept: its place in [`Handle::worker_stats`](crate::Handle::worker_stats).
    pub worker: usize,
    /// What is wrong with it.
    pub kind: LongStepKind,
    /// Whether it had said so: it was inside
    /// [`ProcessContext::blocking`](ganger_proc_api::ProcessContext::blocking) when it was noticed.
    pub is_announced: bool,
    /// How long it has lasted: in all when it is over, else until it was noticed.
    pub lasted: Duration,
    /// Whether it is over.
    pub is_over: bool,
    /// Where it was when it was reported, where [`Builder`](crate::Builder) says that backtraces are to be
    /// taken and one could be: a line for each function, the innermost first. Only of those steps that
    /// have a line in the log.
    pub backtrace: Option<Arc<str>>,
}

/// What is wrong with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LongStepKind {
    /// It blocks its thread.
    Blocked,
    /// It computes for long.
    Computing,
}

impl LongStepKind {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Blocked => "blocks its thread",
            Self::Computing => "takes long",
        }
    }
}

impl LongStep {
    /// Its line in the log: a warning, unless it has announced what it does.
    pub(crate) fn log(&self, suppressed: u64, backtrace: Option<&str>) {
        let Self { pid, worker, .. } = self;
        let (method, what) = (self.method.map(display), self.kind.text());
        let lasted_us = u64::try_from(self.lasted.as_micros()).unwrap_or(u64::MAX);
        let backtrace = backtrace.map(display);
        macro_rules! emit {
            ($level:expr) => {
                log($level, || {
                    tracing::event!(
                        target: "ganger::sched", $level, %pid, method, worker, lasted_us, what, suppressed,
                        backtrace, "a step keeps others waiting; a spare thread takes its worker's place"
                    );
                })
            };
        }
        if self.is_announced {
            emit!(Level::DEBUG);
        } else {
            emit!(Level::WARN);
        }
    }
}

#[derive(Default)]
pub(crate) struct Reports(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// The oldest first, each with the number of its worker's turn.
    last: VecDeque<(u64, LongStep)>,
    /// Steps that are not over: worker, turn, beginning.
    open: Vec<(usize, u64, Since)>,
    longest: Duration,
    told: Vec<Told>,
}

impl Known {
    /// The worker's step in that turn, if it is among the last.
    fn find(&mut self, worker: usize, turn: u64) -> Option<&mut LongStep> {
        let mut last = self.last.iter_mut();
        let found = last.find(|(it, step)| (step.worker, *it) == (worker, turn));
        found.map(|(_, step)| step)
    }
}

/// A method that has had a line.
struct Told {
    method: Option<Symbol>,
    /// Steps that have announced it have lines of their own, at another level.
    is_announced: bool,
    when: Since,
    /// Steps of the same method since then.
    suppressed: u64,
}

impl Told {
    /// Whether steps like that one have the same lines.
    fn is_of(&self, step: &LongStep) -> bool {
        (self.method, self.is_announced) == (step.method, step.is_announced)
    }
}

/// Whether a step is worth a line.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// It is; so many of the same method have had none since the last.
    Tell { suppressed: u64 },
    /// It is not: there has been one in this interval.
    Suppress,
}

impl Reports {
    /// Whether that step is worth a line.
    pub(crate) fn line(&self, step: &LongStep, interval: Duration) -> Line {
        let known = lock(&self.0);
        match known.told.iter().find(|told| told.is_of(step)) {
            Some(told) if told.when.elapsed() < interval => Line::Suppress,
            Some(told) => Line::Tell {
                suppressed: told.suppressed,
            },
            None if known.told.len() < METHODS => Line::Tell { suppressed: 0 },
            None if known.told.iter().any(|it| it.when.elapsed() >= interval) => {
                Line::Tell { suppressed: 0 }
            }
            None => Line::Suppress,
        }
    }

    /// A worker has been relieved because of that step in that turn, which has had that line.
    pub(crate) fn add(&self, step: LongStep, turn: u64, line: Line, interval: Duration) {
        let mut known = lock(&self.0);
        let place = known.told.iter().position(|it| it.is_of(&step));
        match (place, line) {
            (Some(place), Line::Suppress) => known.told[place].suppressed += 1,
            (None, Line::Suppress) => {}
            (place, Line::Tell { .. }) => {
                if let Some(place) = place {
                    known.told.swap_remove(place);
                } else if known.told.len() >= METHODS {
                    known.told.retain(|told| told.when.elapsed() < interval);
                }
                known.told.push(Told {
                    method: step.method,
                    is_announced: step.is_announced,
                    when: Since::before(Duration::ZERO),
                    suppressed: 0,
                });
            }
        }
        let since = Since::before(step.lasted);
        known.open.push((step.worker, turn, since));
        known.last.push_back((turn, step));
        if known.last.len() > KEPT {
            known.last.pop_front();
        }
    }

    /// The worker's step is over, and whatever it did before.
    pub(crate) fn end(&self, worker: usize) {
        let mut known = lock(&self.0);
        while let Some(place) = known.open.iter().position(|&(it, ..)| it == worker) {
            let (_, turn, since) = known.open.swap_remove(place);
            let lasted = since.elapsed();
            known.longest = known.longest.max(lasted);
            if let Some(step) = known.find(worker, turn) {
                (step.lasted, step.is_over) = (lasted, true);
            }
        }
    }

    /// Where the worker's step was in that turn.
    pub(crate) fn set_backtrace(&self, worker: usize, turn: u64, backtrace: &Arc<str>) {
        if let Some(step) = lock(&self.0).find(worker, turn) {
            step.backtrace = Some(Arc::clone(backtrace));
        }
    }

    /// The last ones, the oldest first.
    pub(crate) fn last(&self) -> Vec<LongStep> {
        let known = lock(&self.0);
        known.last.iter().map(|(_, step)| step.clone()).collect()
    }

    /// The longest of those that are over.
    pub(crate) fn longest(&self) -> Duration {
        lock(&self.0).longest
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn step(worker: usize, method: &'static str) -> LongStep {
        LongStep {
            pid: Pid::new(HostName::new("test").unwrap(), 1),
            method: Some(method.into()),
            worker,
            kind: LongStepKind::Blocked,
            is_announced: false,
            lasted: HOUR,
            is_over: false,
            backtrace: None,
        }
    }

    fn add(reports: &Reports, method: &'static str, interval: Duration) -> Line {
        add_step(reports, step(0, method), interval)
    }

    fn add_step(reports: &Reports, step: LongStep, interval: Duration) -> Line {
        let line = reports.line(&step, interval);
        reports.add(step, 0, line, interval);
        reports.end(0);
        line
    }

    // pins: G6
    #[test]
    fn a_step_that_has_announced_it_takes_no_line_from_others() {
        let reports = Reports::default();
        let announced = LongStep {
            is_announced: true,
            ..step(0, "a")
        };
        let tell = Line::Tell { suppressed: 0 };
        assert_eq!(add_step(&reports, announced.clone(), HOUR), tell);
        assert_eq!(add(&reports, "a", HOUR), tell);
        assert_eq!(add_step(&reports, announced, HOUR), Line::Suppress);
        assert_eq!(add(&reports, "a", HOUR), Line::Suppress);
    }

    // pins: G6
    #[test]
    fn a_method_has_one_line_an_interval_which_says_what_had_none() {
        let reports = Reports::default();
        assert_eq!(add(&reports, "a", HOUR), Line::Tell { suppressed: 0 });
        assert_eq!(add(&reports, "a", HOUR), Line::Suppress);
        assert_eq!(add(&reports, "b", HOUR), Line::Tell { suppressed: 0 });
        assert_eq!(add(&reports, "a", HOUR), Line::Suppress);
        let none = Duration::ZERO;
        assert_eq!(add(&reports, "a", none), Line::Tell { suppressed: 2 });
        assert_eq!(add(&reports, "a", none), Line::Tell { suppressed: 0 });
    }

    #[test]
    fn no_more_methods_are_told_apart_than_there_is_room_for() {
        let reports = Reports::default();
        for nth in 0..METHODS {
            let name: &str = Box::leak(format!("m{nth}").into_boxed_str());
            let line = add(&reports, name, HOUR);
            assert_eq!(line, Line::Tell { suppressed: 0 });
        }
        assert_eq!(add(&reports, "one more", HOUR), Line::Suppress);
        let none = Duration::ZERO;
        assert_eq!(
            add(&reports, "one more", none),
            Line::Tell { suppressed: 0 }
        );
        assert_eq!(lock(&reports.0).told.len(), 1);
    }

    #[test]
    fn the_last_are_kept_and_the_longest_is_remembered() {
        let reports = Reports::default();
        for worker in 0..KEPT + 3 {
            reports.add(step(worker, "a"), 0, Line::Suppress, HOUR);
        }
        assert_eq!(reports.longest(), Duration::ZERO, "none is over");
        let workers = |reports: &Reports| -> Vec<_> {
            let last = reports.last();
            last.iter()
                .map(|step| (step.worker, step.is_over))
                .collect()
        };
        let expected: Vec<_> = (3..KEPT + 3).map(|worker| (worker, false)).collect();
        assert_eq!(workers(&reports), expected);
        // One that is not among the last any more.
        reports.end(0);
        assert!(reports.longest() >= HOUR);
        reports.end(4);
        reports.end(4);
        assert_eq!(workers(&reports)[..3], [(3, false), (4, true), (5, false)]);
        assert_eq!(lock(&reports.0).open.len(), KEPT + 1);
    }
}
