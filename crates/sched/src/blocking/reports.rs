//! Reports of steps that keep others waiting: events of `tracing`, written by one thread.
//!
//! **Problem.** A subscriber may wait for what a reported step holds. A process that blocks its
//! thread in each step must not fill the log.
//!
//! **Rejected.** The monitor as the writer: it would wait with the subscriber, and no other step
//! would be noticed. A worker: it would wait, and need a spare in its own place. A line a process: a
//! crowd of processes does the same thing.
//!
//! **Rule.** A method has one line an interval. The next line says how many steps had none.
//!
//! **Protocol.** The monitor, or the step that is about to block, puts a report into a bounded queue
//! and starts the reporter if there is none. The reporter empties the queue and ends. The lock of the
//! queue decides both: a reporter that finds the queue empty has ended for the next one that puts a
//! report there. Where the system refuses the thread, the monitor tries again at each look. When all
//! workers sleep, no step holds anything, and the monitor writes the reports itself.

use crate::clock::Since;
use crate::contain::{contain, is_heard, log};
use crate::long_steps::{LongStep, LongStepKind, NoticedStep};
use crate::shared::Shared;
use crate::threads;
use crate::worker_slots::NoSpare;
use ganger_proc_api::Symbol;
use ganger_sync::sync::{Mutex, lock};
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use tracing::Level;
use tracing::field::display;

/// How many methods are told apart; further ones have no lines until an interval is over.
const METHODS: usize = 256;

/// How many reports may wait. One that finds no room counts as one without a line.
const PENDING: usize = 256;

/// What the reporter is to write.
enum PendingReport {
    /// A step of a method of which so many have had no line.
    Step(NoticedStep, u64),
    /// No thread can take a worker's place.
    NoSpare(NoSpare),
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
    /// The reporter writes that a spare is missing.
    writes_no_spare: bool,
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

impl Reports {
    /// Queues a report of that step, unless its method has had one in this interval.
    fn queue_step(&self, noticed: NoticedStep, interval: Duration) {
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

    /// Queues a report that no spare is left, unless there has been one in this interval, or one has
    /// not been written yet.
    fn queue_no_spare(&self, error: NoSpare, interval: Duration) {
        let mut queue = lock(&self.0);
        let is_due = (queue.no_spare).is_none_or(|at| at.elapsed() >= interval);
        let is_no_spare = |it: &PendingReport| matches!(it, PendingReport::NoSpare(_));
        let is_pending = queue.writes_no_spare || queue.pending.iter().any(is_no_spare);
        if is_due && !is_pending && queue.pending.len() < PENDING {
            queue.no_spare = Some(Since::before(Duration::ZERO));
            queue.pending.push_back(PendingReport::NoSpare(error));
        }
    }

    /// Whether the caller is to write what is queued: there is something, and no other thread does.
    #[must_use]
    fn become_reporter(&self) -> bool {
        let mut queue = lock(&self.0);
        let is_needed = !queue.has_reporter && !queue.pending.is_empty();
        queue.has_reporter |= is_needed;
        is_needed
    }

    /// How many reports wait.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.0).pending.len()
    }

    /// The caller is to write nothing more.
    fn resign(&self) {
        lock(&self.0).has_reporter = false;
    }

    /// What the reporter writes next, after the last one; none when the queue is empty, and the caller the reporter no
    /// longer.
    fn next(&self) -> Option<PendingReport> {
        let mut queue = lock(&self.0);
        let next = queue.pending.pop_front();
        queue.writes_no_spare = matches!(next, Some(PendingReport::NoSpare(_)));
        queue.has_reporter = next.is_some();
        next
    }
}

impl Shared {
    /// Reports a step that keeps others waiting.
    pub(crate) fn report_step(self: &Arc<Self>, noticed: NoticedStep) {
        if self.backtraces.is_some() || is_heard(level_of(&noticed.step)) {
            let interval = self.config.report_interval;
            self.reports.queue_step(noticed, interval);
            self.start_reporter();
        }
    }

    /// Reports that no thread can take a worker's place.
    pub(crate) fn report_no_spare(self: &Arc<Self>, error: NoSpare) {
        if is_heard(Level::WARN) {
            let interval = self.config.report_interval;
            self.reports.queue_no_spare(error, interval);
            self.start_reporter();
        }
    }

    /// Starts a thread that writes what is queued, if something is and no thread does so already.
    ///
    /// A `stop` does not wait for that thread, for a subscriber may call `stop` on it. Where the
    /// system refuses the thread, the reports stay in the queue.
    pub(crate) fn start_reporter(self: &Arc<Self>) {
        if !self.reports.become_reporter() {
            return;
        }
        let reporter = Reporter::new(self);
        if runs_without_threads() {
            return reporter.write_all();
        }
        let name = format!("{}-warning", self.config.thread_name);
        let builder = thread::Builder::new().name(name);
        if threads::spawn_detached(builder, self, move || reporter.write_all()).is_err() {
            self.reports.resign();
        }
    }

    /// Writes what is queued on this thread, unless another does.
    pub(crate) fn report_here(self: &Arc<Self>) {
        if self.reports.become_reporter() {
            Reporter::new(self).write_all();
        }
    }
}

#[cfg(feature = "sim")]
use crate::sim::is_driven as runs_without_threads;

#[cfg(not(feature = "sim"))]
fn runs_without_threads() -> bool {
    false
}

/// Writes reports. It does not keep the scheduler alive while a subscriber waits.
struct Reporter {
    reports: Arc<Reports>,
    shared: Weak<Shared>,
    max_spares: usize,
}

impl Reporter {
    fn new(shared: &Arc<Shared>) -> Self {
        Self {
            reports: Arc::clone(&shared.reports),
            shared: Arc::downgrade(shared),
            max_spares: shared.config.max_spares,
        }
    }

    /// Writes until the queue is empty.
    fn write_all(self) {
        while let Some(report) = self.reports.next() {
            match report {
                PendingReport::Step(noticed, suppressed) => {
                    let backtrace = self.backtrace(&noticed);
                    emit_step(&noticed.step, suppressed, backtrace.as_deref());
                }
                PendingReport::NoSpare(error) => emit_no_spare(&error, self.max_spares),
            }
        }
    }

    /// Where the step is, if backtraces are taken and its turn goes on; the record has it as well.
    fn backtrace(&self, NoticedStep { turn, step }: &NoticedStep) -> Option<Arc<str>> {
        let shared = self.shared.upgrade()?;
        let backtraces = shared.backtraces.as_ref()?;
        let is_current = || shared.is_in_turn(step.worker, *turn, step.pid);
        let with_thread = |f: &dyn Fn(u32) -> bool| shared.worker_slots.with_thread(step.worker, f);
        // It is much code of others that looks at what others have compiled.
        let backtrace =
            contain(|| backtraces.backtrace(step.worker, &is_current, &with_thread)).ok()??;
        (shared.long_steps).set_backtrace(step.worker, *turn, &backtrace);
        Some(backtrace)
    }
}

/// A warning, unless the step has announced what it does.
fn level_of(step: &LongStep) -> Level {
    if step.is_announced {
        Level::DEBUG
    } else {
        Level::WARN
    }
}

fn emit_step(step: &LongStep, suppressed: u64, backtrace: Option<&str>) {
    let LongStep { pid, worker, .. } = step;
    let method = step.method.map(display);
    let what = match step.kind {
        LongStepKind::Blocked => "blocks its thread",
        LongStepKind::Computing => "takes long",
    };
    let lasted_us = u64::try_from(step.lasted.as_micros()).unwrap_or(u64::MAX);
    let backtrace = backtrace.map(display);
    macro_rules! emit {
        ($level:expr) => {
            log($level, || {
                tracing::event!(
                    target: "ganger::sched", $level, %pid, method, worker, lasted_us, what,
                    suppressed, backtrace,
                    "a step keeps others waiting; a spare thread takes its worker's place"
                );
            })
        };
    }
    if step.is_announced {
        emit!(Level::DEBUG);
    } else {
        emit!(Level::WARN);
    }
}

fn emit_no_spare(error: &NoSpare, max_spares: usize) {
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", max_spares, %error,
            "steps keep all workers, and processes wait until one returns"
        );
    });
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
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

    /// Of the report that is written next: how many steps of its method have had none.
    fn next(reports: &Reports) -> Option<u64> {
        match reports.next() {
            Some(PendingReport::Step(_, suppressed)) => Some(suppressed),
            _ => None,
        }
    }

    /// Queues a step, and returns what its report says of others; none if it has no report.
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
