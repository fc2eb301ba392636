//! Reports of steps that keep processes waiting: events of `tracing`, written by a single thread.
//!
//! **Problem.** A subscriber may wait for a resource of the reported step. A process that blocks
//! its thread in each step must not fill the log.
//!
//! **Rejected.** The monitor as the writer: it would wait with the subscriber, and no other step
//! would be noticed. A worker: it would wait, and need a spare in its own place. A line a process:
//! a crowd of processes does the same.
//!
//! **Rule.** A method has one line an interval. The next line has the number of steps without a
//! line.
//!
//! **Protocol.** The monitor, or the step that is about to block, puts a report into a bounded
//! queue and starts the reporter if none is there. The reporter empties the queue and ends. The
//! lock of the queue decides both: a reporter that finds the queue empty has ended for the next
//! thread with a report. Where the system refuses the thread, the monitor tries again at each look.
//! When all workers sleep, no step holds anything, and the monitor writes the reports itself.

use crate::base::contain::{contain, is_heard, log};
use crate::probe::{Decide, Decider};
use crate::reports::long_steps::{LongStep, LongStepKind, NoticedStep};
use crate::reports::queue::NoSpare;
use crate::reports::queue::{PendingReport, Reports};
use crate::runtime::shared::Shared;
use crate::runtime::threads;
use ganger_os::WithId;
use std::sync::{Arc, Weak};
use std::thread;
use tracing::Level;
use tracing::field::display;

impl Shared {
    /// Reports a step that keeps processes waiting.
    pub(crate) fn report_step(self: &Arc<Self>, noticed: NoticedStep) {
        if self.config.long_step_backtraces || is_heard(level_of(&noticed.step)) {
            let interval = self.config.report_interval;
            self.reporting.reports.queue_step(noticed, interval);
            self.start_reporter();
        }
    }

    /// Reports the lack of a thread to take a worker's place.
    pub(crate) fn report_no_spare(self: &Arc<Self>, error: NoSpare) {
        if is_heard(Level::WARN) {
            let interval = self.config.report_interval;
            self.reporting.reports.queue_no_spare(error, interval);
            self.start_reporter();
        }
    }

    /// Starts a thread that writes the queued reports, if any are queued and no thread does so
    /// already.
    ///
    /// A `stop` does not wait for this thread, for a subscriber may call `stop` on it. Where the
    /// system refuses the thread, the reports stay in the queue.
    pub(crate) fn start_reporter(self: &Arc<Self>) {
        if !self.reporting.reports.become_reporter() {
            return;
        }
        let reporter = Reporter::new(self);
        if Decider::is_driven() {
            return reporter.write_all();
        }
        let name = format!("{}-warning", self.config.thread_name);
        let builder = thread::Builder::new().name(name);
        if threads::spawn_detached(builder, self, move || reporter.write_all()).is_err() {
            self.reporting.reports.resign();
        }
    }

    /// Writes the queued reports on this thread, unless another does.
    pub(crate) fn report_here(self: &Arc<Self>) {
        if self.reporting.reports.become_reporter() {
            Reporter::new(self).write_all();
        }
    }
}

/// Writes reports. The reporter does not keep the scheduler alive while a subscriber waits.
struct Reporter {
    reports: Arc<Reports>,
    shared: Weak<Shared>,
    max_spares: usize,
}

impl Reporter {
    fn new(shared: &Arc<Shared>) -> Self {
        Self {
            reports: Arc::clone(&shared.reporting.reports),
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

    /// Returns where the step is, if backtraces are taken and its turn goes on, and puts it into
    /// the record as well.
    fn backtrace(&self, NoticedStep { turn, step }: &NoticedStep) -> Option<Arc<str>> {
        let shared = self.shared.upgrade()?;
        let backtraces = shared.reporting.backtraces.as_ref();
        let backtraces = backtraces.filter(|_| shared.config.long_step_backtraces)?;
        let is_current = || shared.is_in_turn(step.worker, *turn, step.pid);
        let with_thread = |f: &WithId<'_>| shared.worker_slots.with_thread(step.worker, f);
        // Much foreign code looks at foreign binaries here.
        let backtrace =
            contain(|| backtraces.backtrace(step.worker, &is_current, &with_thread)).ok()??;
        (shared.reporting.long_steps).set_backtrace(step.worker, *turn, &backtrace);
        Some(backtrace)
    }
}

/// Returns the level of a warning, unless the step has announced its block.
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
