//! Reports of a process and of its answers, where nothing else reports the failure.

use crate::base::clock::nanos;
use crate::base::contain::{contain_and_report, text_of_chain};
use crate::probe::{Decide, Decider};
use crate::process::failed::{Failed, is_failure};
use crate::progress::stopped::StoppedProcess;
use crate::reports::failures::{Failure, FailureReport, OnFailure};
use crate::runtime::cell::ProcessCell;
use crate::runtime::shared::Shared;
use ganger_proc_api::{CommandError, ExitCause, ExitReason, Tag};
use std::time::Duration;

impl ProcessCell {
    /// Keeps the names of the process, which is about to end for this reason. `None` if the reason
    /// is not a failure, or no report is wanted.
    pub(crate) fn failed(&self, reason: &ExitReason) -> Option<Box<Failed>> {
        match reason {
            ExitReason::Done(_) | ExitReason::Cancelled(_) | ExitReason::Terminated => None,
            reason => self.failed_by(reason),
        }
    }

    #[cold]
    #[inline(never)]
    fn failed_by(&self, reason: &ExitReason) -> Option<Box<Failed>> {
        let is_quiet = matches!(self.shared.config.on_failure, OnFailure::Quiet);
        if is_quiet || !is_failure(reason) {
            return None;
        }
        // The process has its names until it releases its resources.
        let names = self.shared.names.of(self.pid());
        Some(Box::new(Failed { names }))
    }

    /// Returns the process's entry in the report of a stop.
    #[cold]
    pub(crate) fn stopped(&self) -> StoppedProcess {
        let time = nanos(Decider::time().unwrap_or_else(|| self.shared.timing.time.read()));
        StoppedProcess {
            pid: self.pid(),
            names: self.shared.names.of(self.pid()),
            type_name: Some(self.about.type_name()),
            method: Some(self.method),
            since: self.about.ran_before(time).map(Duration::from_nanos),
        }
    }

    /// Reports the failure of the process, which nothing watches.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_end(&self, reason: &ExitReason, failed: Option<Box<Failed>>) {
        let cause = ExitCause::of(reason, text_of_chain);
        let failure = match reason {
            ExitReason::Exited(_) => Failure::Exited(cause),
            _ => Failure::Ended(cause),
        };
        let names = failed.map(|it| it.names).unwrap_or_default();
        self.report(failure, names);
    }

    /// Reports an error as the answer to a request of the process, where its actor does not take
    /// the answer.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_answer(&self, tag: Tag, error: &CommandError) {
        let error = text_of_chain(error);
        let failure = Failure::Answer { tag, error };
        self.report(failure, self.shared.names.of(self.pid()));
    }

    /// Reports an answer of the process, not looked at by the asking code.
    #[cold]
    #[inline(never)]
    pub(crate) fn report_dropped(&self, error: &CommandError) {
        let failure = Failure::Dropped(text_of_chain(error));
        self.report(failure, self.shared.names.of(self.pid()));
    }

    fn report(&self, failure: Failure, names: Vec<Box<str>>) {
        let report = FailureReport {
            pid: self.target(),
            names,
            type_name: self.about.type_name(),
            method: self.method,
            failure,
        };
        self.shared.report_failure(&report);
    }
}

impl Shared {
    fn report_failure(&self, report: &FailureReport) {
        match &self.config.on_failure {
            OnFailure::Quiet => {}
            OnFailure::Line => {
                let now = Decider::time().unwrap_or_else(|| self.timing.time.read());
                self.reporting.failure_lines.write(report, now);
            }
            OnFailure::Call(call) => {
                contain_and_report("on_failure", report.pid, self.own_counters(), || {
                    call(report);
                });
            }
        }
    }
}
