//! Reports of long steps, waiting to be written.

use crate::base::clock::Since;
use crate::reports::long_steps::NoticedStep;
use ganger_proc_api::Symbol;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// How many methods are told apart; further methods have no lines until an interval is over.
const METHODS: usize = 256;

/// How many reports may wait. A report without room counts as a report without a line.
const PENDING: usize = 256;

/// A report for the reporter to write.
pub(crate) enum PendingReport {
    /// A step, with the number of its method's steps without a line.
    Step(NoticedStep, u64),
    /// No thread can take a worker's place.
    NoSpare(NoSpare),
}

/// Why no thread can take a worker's place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSpare {
    #[error("all spare threads are in use; raise `max_spares`, or block on a thread of your own")]
    Limit,
    #[error("the system refuses another thread: {0}")]
    System(io::Error),
}

#[derive(Default)]
pub(crate) struct Reports(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    /// The oldest first; at most [`PENDING`].
    pending: VecDeque<PendingReport>,
    /// A thread writes them.
    has_reporter: bool,
    told: Vec<Told>,
    /// When the last report of a missing spare was queued.
    no_spare: Option<Since>,
    /// Whether the reporter is writing the report of a missing spare.
    writes_no_spare: bool,
}

/// A method with a line.
struct Told {
    method: Option<Symbol>,
    /// Announced steps have lines of their own, at another level.
    is_announced: bool,
    when: Since,
    /// Steps of the same method since then.
    suppressed: u64,
}

impl Reports {
    /// Queues a report of the step, unless its method has had a line in this interval.
    pub(crate) fn queue_step(&self, noticed: NoticedStep, interval: Duration) {
        let mut queue = lock(&self.0);
        let NoticedStep { step, .. } = &noticed;
        let is_like = |it: &Told| (it.method, it.is_announced) == (step.method, step.is_announced);
        let place = queue.told.iter().position(is_like);
        let has_room = queue.pending.len() < PENDING;
        let mut suppressed = 0;
        if let Some(place) = place {
            let told = &mut queue.told[place];
            if told.when.elapsed() < interval || !has_room {
                told.suppressed += 1;
                return;
            }
            suppressed = told.suppressed;
            queue.told.swap_remove(place);
        } else if queue.told.len() >= METHODS {
            queue.told.retain(|told| told.when.elapsed() < interval);
        }
        if queue.told.len() >= METHODS || !has_room {
            return;
        }
        queue.told.push(Told {
            method: step.method,
            is_announced: step.is_announced,
            when: Since::before(Duration::ZERO),
            suppressed: 0,
        });
        let report = PendingReport::Step(noticed, suppressed);
        queue.pending.push_back(report);
    }

    /// Queues a report that no spare is left, unless this interval has had one, or an earlier one
    /// has not been written yet.
    pub(crate) fn queue_no_spare(&self, error: NoSpare, interval: Duration) {
        let mut queue = lock(&self.0);
        let is_due = (queue.no_spare).is_none_or(|at| at.elapsed() >= interval);
        let is_no_spare = |it: &PendingReport| matches!(it, PendingReport::NoSpare(_));
        let is_pending = queue.writes_no_spare || queue.pending.iter().any(is_no_spare);
        if is_due && !is_pending && queue.pending.len() < PENDING {
            queue.no_spare = Some(Since::before(Duration::ZERO));
            queue.pending.push_back(PendingReport::NoSpare(error));
        }
    }

    /// Makes the caller the reporter if a report is queued and no other thread writes. Returns
    /// whether the caller is the reporter now.
    #[must_use]
    pub(crate) fn become_reporter(&self) -> bool {
        let mut queue = lock(&self.0);
        let is_needed = !queue.has_reporter && !queue.pending.is_empty();
        queue.has_reporter |= is_needed;
        is_needed
    }

    /// Returns the number of waiting reports.
    #[cfg(all(test, not(ganger_loom)))]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).pending.len()
    }

    /// Ends the caller's writing.
    pub(crate) fn resign(&self) {
        lock(&self.0).has_reporter = false;
    }

    /// Takes the reporter's next report; `None` when the queue is empty, and the caller ceases to
    /// be the reporter.
    pub(crate) fn next(&self) -> Option<PendingReport> {
        let mut queue = lock(&self.0);
        let next = queue.pending.pop_front();
        queue.writes_no_spare = matches!(next, Some(PendingReport::NoSpare(_)));
        queue.has_reporter = next.is_some();
        next
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::reports::long_steps::{LongStep, LongStepKind};
    use ganger_proc_api::{HostName, Pid};

    const HOUR: Duration = Duration::from_secs(3_600);

    fn step(method: &'static str) -> LongStep {
        LongStep {
            pid: Pid::new(HostName::new("test").unwrap(), 1),
            method: Some(method.into()),
            worker: 0,
            kind: LongStepKind::Blocked,
            is_announced: false,
            lasted: HOUR,
            is_over: false,
            backtrace: None,
        }
    }

    /// Takes the next report, and returns its number: its method's steps without a report.
    fn next(reports: &Reports) -> Option<u64> {
        match reports.next() {
            Some(PendingReport::Step(_, suppressed)) => Some(suppressed),
            _ => None,
        }
    }

    /// Queues a step, and returns the number in its report; `None` if it has no report.
    fn add(reports: &Reports, step: LongStep, interval: Duration) -> Option<u64> {
        reports.queue_step(NoticedStep { turn: 0, step }, interval);
        next(reports)
    }

    // pins: G6
    #[test]
    fn a_step_that_has_announced_it_takes_no_line_from_others() {
        let reports = Reports::default();
        let announced = LongStep {
            is_announced: true,
            ..step("a")
        };
        assert_eq!(add(&reports, announced.clone(), HOUR), Some(0));
        assert_eq!(add(&reports, step("a"), HOUR), Some(0));
        assert_eq!(add(&reports, announced, HOUR), None);
        assert_eq!(add(&reports, step("a"), HOUR), None);
    }

    // pins: G6
    #[test]
    fn a_method_has_one_line_an_interval_which_says_what_had_none() {
        let reports = Reports::default();
        assert_eq!(add(&reports, step("a"), HOUR), Some(0));
        assert_eq!(add(&reports, step("a"), HOUR), None);
        assert_eq!(add(&reports, step("b"), HOUR), Some(0));
        assert_eq!(add(&reports, step("a"), HOUR), None);
        let none = Duration::ZERO;
        assert_eq!(add(&reports, step("a"), none), Some(2));
        assert_eq!(add(&reports, step("a"), none), Some(0));
    }

    #[test]
    fn no_more_methods_are_told_apart_than_there_is_room_for() {
        let reports = Reports::default();
        for nth in 0..METHODS {
            let name: &str = Box::leak(format!("m{nth}").into_boxed_str());
            assert_eq!(add(&reports, step(name), HOUR), Some(0));
        }
        assert_eq!(add(&reports, step("one more"), HOUR), None);
        let none = Duration::ZERO;
        assert_eq!(add(&reports, step("one more"), none), Some(0));
        assert_eq!(lock(&reports.0).told.len(), 1);
    }

    // pins: G6
    #[test]
    fn what_finds_no_room_counts_as_a_step_without_a_line() {
        let reports = Reports::default();
        let queue = |interval| {
            let step = step("a");
            reports.queue_step(NoticedStep { turn: 0, step }, interval);
        };
        (0..PENDING + 2).for_each(|_| queue(Duration::ZERO));
        assert!((0..PENDING).all(|_| next(&reports) == Some(0)));
        assert_eq!(next(&reports), None);
        queue(Duration::ZERO);
        assert_eq!(next(&reports), Some(2));
    }

    // pins: G6
    #[test]
    fn a_missing_spare_is_not_told_again_while_that_is_being_told() {
        let reports = Reports::default();
        let queue = || reports.queue_no_spare(NoSpare::Limit, Duration::ZERO);
        let is_told = || matches!(reports.next(), Some(PendingReport::NoSpare(_)));
        queue();
        queue();
        assert!(is_told());
        queue();
        assert!(reports.next().is_none());
        queue();
        assert!(is_told());
    }

    // pins: G6
    #[test]
    fn one_thread_writes_and_another_does_when_it_has_ended() {
        let reports = Reports::default();
        assert!(!reports.become_reporter(), "nothing is queued");
        let queue = || {
            let step = step("a");
            reports.queue_step(NoticedStep { turn: 0, step }, Duration::ZERO);
        };
        queue();
        assert!(reports.become_reporter());
        assert_eq!(next(&reports), Some(0));
        queue();
        assert!(!reports.become_reporter(), "the first looks again");
        assert_eq!((next(&reports), next(&reports)), (Some(0), None));
        queue();
        assert!(reports.become_reporter());
        // The system has refused its thread.
        reports.resign();
        assert!(reports.become_reporter());
    }
}
