//! Stopping: ask, wait, force, report.
//!
//! 1. `stopping`: submits are refused; the reaper, a thread of its own, gives every process a cancel
//!    event.
//! 2. Workers go on until all processes have ended, or the deadline has passed.
//! 3. `terminating`: what is left ends at its next step boundary. The reaper sees to that, and ends
//!    processes whose workers are all stuck.
//! 4. `halted`: workers return when nothing is queued any more. What is queued after that ends on a
//!    thread of the scheduler's own, for which later calls of `stop` wait. A process whose turn ends
//!    after that ends with it.
//! 5. What is still inside a call is reported as stuck. It ends when that returns.
//!
//! `stop` does this on the thread of its caller, and `begin_stop` on one that it starts. The first of
//! all calls does the work, and the others wait for its report. A `stop` from inside a call that this
//! work waits for is refused.

use crate::clock::Deadline;
use crate::contain::log;
use crate::counted;
use crate::frames::{self, Frame};
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

/// Why a scheduler was not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// `stop` would wait for the call that it is made from: a step, `init`, `close`, a hook, a handler, a
    /// destructor or a `tracing` subscriber on a thread of the scheduler, or in a submission to it.
    #[error(
        "`stop` would wait for the call of the scheduler that it is made from; use \
         `begin_stop(deadline)`, which returns at once"
    )]
    Inside,
}

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
    /// Stops the scheduler, or waits until another thread has stopped it. Blocks until `deadline` has
    /// passed and a little longer, at the most.
    #[cfg_attr(feature = "sim", track_caller)]
    pub(crate) fn stop(self: &Arc<Self>, deadline: Duration) -> Result<StopReport, StopError> {
        #[cfg(feature = "sim")]
        crate::sim::refuse_to_block("stop", "`Rt::stop`");
        if frames::is_inside(&**self) {
            return Err(StopError::Inside);
        }
        let deadline = Deadline::after(deadline);
        // Whether another one is to do the work shows at the report.
        let _is_first = self.ask_to_stop(deadline);
        let (report, is_first) = self.stop_or_wait();
        if !is_first {
            // Something may have been queued since: the program may be about to end.
            let until = deadline.plus(GRACE);
            self.late_hands.wait(|| until);
        }
        Ok(report)
    }

    /// Has the scheduler stopped by a thread of its own, unless one is at it.
    pub(crate) fn begin_stop(self: &Arc<Self>, deadline: Duration) {
        #[cfg(feature = "sim")]
        if crate::sim::is_driven() {
            return crate::sim::begin_stop(self, deadline);
        }
        if !self.ask_to_stop(Deadline::after(deadline)) {
            return;
        }
        let theirs = Arc::clone(self);
        // It does not count: the work includes to wait for all threads that do.
        let started = counted::spawn_beside(counted::builder(self, "stop"), self, move || {
            // The caller may be pinned.
            theirs.crew.unpin();
            let _report = theirs.stop_or_wait();
        });
        if let Err(error) = started {
            log(
                Level::ERROR,
                || tracing::error!(target: "ganger::sched", %error, "can't start the thread that stops the scheduler"),
            );
            self.force();
        }
    }

    /// Notes what a call asks for, and lets a stop that is under way look again. Whether the caller is to do the work.
    fn ask_to_stop(&self, deadline: Deadline) -> bool {
        self.shutdown.begin_stopping();
        self.shutdown.ask(deadline, || self.counters.total());
        self.live.poke();
        self.threads.poke();
        self.shutdown.serve()
    }

    /// The report, and whether it is this call that has done the work. Blocks while another one is at it.
    fn stop_or_wait(self: &Arc<Self>) -> (StopReport, bool) {
        let mut report = self.report.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = report.is_none();
        let stop = || frames::within(&**self, Frame::Stop, || self.stop_once());
        (report.get_or_insert_with(stop).clone(), is_first)
    }

    fn stop_once(self: &Arc<Self>) -> StopReport {
        let progress = &self.shutdown;
        // A start that is under way is over after this; a later one is refused.
        drop(self.starting.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.is_served() {
            // No worker serves the cancel events.
            progress.expire();
        }
        log(
            Level::INFO,
            || tracing::info!(target: "ganger::sched", live = self.live.get(), "stopping"),
        );

        let helped = self.live.get() == 0 || reaper::start(self);
        if !helped {
            reaper::tell_all(self);
        }
        if !self.live.wait(|| 0, || progress.deadline()) {
            progress.begin_terminating();
            self.live.poke();
            if !helped {
                self.force_what_is_left();
            }
            self.live.wait(|| 0, || progress.deadline().plus(GRACE));
        }
        self.halt();
        self.threads
            .wait(|| 0, || progress.deadline().plus(GRACE + JOIN));

        let report = self.report_since(&progress.before().unwrap_or_default());
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

    /// Ends what can be ended at once. For a stop without any thread that could wait for the deadline.
    fn force(self: &Arc<Self>) {
        self.shutdown.expire();
        self.shutdown.begin_terminating();
        self.force_what_is_left();
        self.halt();
    }

    /// Does without a reaper what that does at the deadline.
    fn force_what_is_left(self: &Arc<Self>) {
        reaper::terminate_all(self);
        if !self.is_served() {
            // There is no other thread that ever would.
            reaper::reap(self);
        }
    }

    /// Tells the workers and the monitor to return.
    fn halt(&self) {
        self.shutdown.halt();
        self.live.poke();
        self.idle.notify_all();
        self.idle.end_nap();
        self.crew.wake_all();
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use ganger_proc_api::{BoxError, Events, ExitReason, Process, StepOutput};

    /// Waits, and ignores all that it is told.
    struct Waits;

    impl Process for Waits {
        fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
            events.for_each(drop);
            out.idle();
            Ok(())
        }
    }

    // pins: D3, D4
    #[test]
    fn a_stop_begins_and_ends_when_the_system_grants_no_thread() {
        const HOUR: Duration = Duration::from_secs(3_600);
        for is_started in [true, false] {
            let scheduler = Scheduler::builder().workers(1).build().unwrap();
            if is_started {
                scheduler.start().unwrap();
            }
            scheduler.shared.crew.refuse_threads(true);
            let waits = scheduler.submit(Waits, "main", ()).unwrap();
            scheduler.begin_stop(HOUR);
            let reason = waits.wait_timeout(Duration::from_secs(60)).unwrap();
            assert!(matches!(reason, ExitReason::Terminated));
            assert_eq!(scheduler.stop(HOUR).unwrap().forced, 1);
        }
    }

    // pins: D3
    #[test]
    fn a_stop_is_refused_on_the_threads_of_its_scheduler() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let stop = move |shared: &Arc<Shared>| tell.send(shared.stop(Duration::ZERO)).unwrap();
        counted::spawn(std::thread::Builder::new(), &scheduler.shared, stop).unwrap();
        assert_eq!(told.recv(), Ok(Err(StopError::Inside)));
        assert!(!scheduler.is_stopping());
    }
}
