//! Stopping: ask, wait, force, report.
//!
//! 1. `stopping`: submits are refused; the reaper, a thread of its own, gives every process a cancel
//!    event.
//! 2. Workers go on until all processes have ended, or the deadline has passed.
//! 3. `terminating`: what is left ends at its next step boundary. The reaper sees to that, and ends
//!    processes whose workers are all stuck.
//! 4. `halted`: workers return when nothing is queued any more; who queues a process after that has
//!    a thread of the scheduler's end it, for which later calls of `stop` wait; and a process whose turn ends after that ends with it.
//! 5. What is still inside a call is reported as stuck. It ends when that returns.
//!
//! A `stop` may be called from inside a turn or a submission, which counts as live: nobody waits
//! for those, whichever call of `stop` does the work.

use crate::clock::Deadline;
use crate::contain::log;
use crate::local::{self, Held};
use crate::reaper;
use crate::shared::Shared;
use crate::stats::WorkerStats;
use ganger_proc_api::Pid;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::Level;

/// How long after the deadline the forced processes have to end before the workers are left alone.
const GRACE: Duration = Duration::from_millis(30);
/// How long after that the threads have to return before they are left alone.
const JOIN: Duration = Duration::from_millis(10);

/// What became of the processes that were alive when a scheduler was stopped.
///
/// When `closing` is not zero, the workers went on while these were counted: one or the other process
/// may count as stuck that was just ending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// Processes that ended by themselves, before the deadline or in the step that it fell in.
    pub completed: u64,
    /// Processes that had not, and were terminated: they take no further step.
    pub forced: u64,
    /// How many of those were still to be closed when `stop` returned, because there were too many
    /// for its time. The workers go on with them, or other threads where workers are stuck: up to sixteen.
    pub closing: u64,
    /// Processes whose step, `close` or exit hook had not returned when `stop` did. They end when
    /// it returns.
    pub stuck: Vec<Pid>,
}

/// The report of the first call of `stop`; locked while that is at work.
#[derive(Default)]
pub(crate) struct Report(Mutex<Option<StopReport>>);

impl Shared {
    /// Stops the scheduler, or waits until somebody else has stopped it. Blocks until `deadline` has
    /// passed and a little longer, at the most.
    #[cfg_attr(feature = "sim", track_caller)]
    pub(crate) fn stop(self: &Arc<Self>, deadline: Duration) -> StopReport {
        #[cfg(feature = "sim")]
        crate::sim::refuse_to_block("stop", "`Rt::stop`");
        self.shutdown.begin_stopping();
        let _inside = self.shutdown.enter(self, deadline);
        // Whoever is at it has to wait for less now.
        self.live.poke();
        self.threads.poke();
        if local::is_stopping(self) {
            // Called by something that the first call has called: there is no report yet.
            return StopReport::default();
        }
        let (report, is_first) = self.stop_or_wait();
        if !is_first && local::held(self) == (0, 0) {
            // Something may have been queued since: the program may be about to end.
            let until = Deadline::after(deadline).plus(GRACE);
            self.late_hands.wait(|| until);
        }
        report
    }

    /// The report, and whether it is this call that has done the work. Blocks while another one is at it.
    fn stop_or_wait(self: &Arc<Self>) -> (StopReport, bool) {
        let mut report = self.report.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _stopping = local::hold(self, Held::Stop);
        let is_first = report.is_none();
        (
            report.get_or_insert_with(|| self.stop_once()).clone(),
            is_first,
        )
    }

    fn stop_once(self: &Arc<Self>) -> StopReport {
        let progress = &self.shutdown;
        // A start that is under way is over after this; a later one is refused.
        drop(self.starting.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.is_served() {
            // Nobody serves the cancel events.
            progress.expire();
        }
        let before = self.counters.total();
        log(
            Level::INFO,
            || tracing::info!(target: "ganger::sched", live = self.live.get(), "stopping"),
        );

        let helped = self.live.get() <= progress.held() || reaper::start(self);
        if !helped {
            reaper::tell_all(self);
        }
        if !self.live.wait(|| progress.held(), || progress.deadline()) {
            progress.begin_terminating();
            self.live.poke();
            if !helped {
                reaper::terminate_all(self);
                if !self.is_served() {
                    // Nobody else ever does.
                    reaper::reap(self);
                }
            }
            self.live
                .wait(|| progress.held(), || progress.deadline().plus(GRACE));
        }
        progress.halt();
        self.live.poke();
        self.idle.notify_all();
        self.idle.end_nap();
        self.worker_slots.wake_all();
        let callers = || progress.sum(|caller| usize::from(caller.is_own));
        self.threads
            .wait(callers, || progress.deadline().plus(GRACE + JOIN));

        let report = self.report_since(&before);
        if report.forced > 0 {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched", forced = report.forced, first = %self.shutdown.forced.first(),
                    "the deadline has passed, and processes were forced to end"
                );
            });
        }
        log(
            Level::INFO,
            || tracing::info!(target: "ganger::sched", ?report, "stopped"),
        );
        report
    }

    pub(crate) fn report_since(&self, before: &WorkerStats) -> StopReport {
        let stuck = self.running_pids();
        let total = self.counters.total();
        let alive = total.started.saturating_sub(before.ended());
        let by_themselves = |stats: &WorkerStats| stats.ended().saturating_sub(stats.forced);
        let completed = by_themselves(&total).saturating_sub(by_themselves(before));
        let forced = alive.saturating_sub(completed + stuck.len() as u64);
        // Not by looking at them: there may be millions.
        let left = total.started.saturating_sub(total.ended());
        let closing = left.saturating_sub(stuck.len() as u64);
        StopReport {
            completed,
            forced,
            closing: closing.min(forced),
            stuck,
        }
    }
}
