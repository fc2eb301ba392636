//! Stopping: ask, wait, force, report.
//!
//! 1. *Stopping*: submits are refused, except from a live process: its clean-up may need others. So
//!    a process starts below a counted process. No sender waits for room. The supervisor, a thread
//!    of its own, returns waiting senders their messages, and gives every process a cancel event.
//! 2. Workers go on until all processes have ended, or the deadline has passed.
//! 3. *Terminating*: the remaining processes end at their next step boundary. The supervisor sees
//!    to it, and has reapers end processes whose workers are all stuck.
//! 4. *Halted*: workers return when the queues are empty. A process queued later ends on a reaper,
//!    and on the queueing thread where the system grants no other. A process whose turn ends later
//!    ends with the turn.
//! 5. A process still inside a call is reported as stuck, and ends when the call returns.
//!
//! `stop` does this on the thread of its caller, and `begin_stop` on a thread that it starts. The
//! first of all calls does the work, and the others wait for its report. A `stop` is refused inside
//! a call that this work waits for.
//!
//! **Imports**: workers, turns and processes. None of these imports this folder: `Progress` shows
//! them the phase of a stop, and [`Shared::end_after_halt`] calls a function set when the scheduler
//! was built.

mod queued;
mod reapers;
mod supervisor;

pub(crate) use self::queued::end_queued;
pub(crate) use self::supervisor::{cancel_all, end_waits, terminate_all};

use crate::base::clock::Deadline;
use crate::base::contain::log;
use crate::base::stats::WorkerStats;
use crate::probe::{Decide, Decider};
use crate::progress::fence_after_halt;
use crate::progress::report::{StopError, StopReport};
use crate::progress::stopped::Named;
use crate::progress::stopped::StoppedProcess;
use crate::progress::stopper::Done;
use crate::runtime::frames::{self, Frame};
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::runtime::threads;
use ganger_proc_api::Pid;
use ganger_sync::sync::lock;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tracing::Level;

/// How long after the deadline the forced processes have to end before the workers are left alone.
const GRACE: Duration = Duration::from_millis(30);
/// How long after the grace the threads have to return before they are left alone.
const JOIN: Duration = Duration::from_millis(10);

impl Shared {
    /// Reports the ends of processes since `before`.
    pub(crate) fn report_since(&self, before: &WorkerStats) -> StopReport {
        let stuck: Vec<_> = (self.running_pids().into_iter())
            .map(|pid| self.stopped_process(pid))
            .collect();
        let total = self.counters.total();
        let alive = total.started.saturating_sub(before.ended());
        let by_themselves = |stats: &WorkerStats| stats.ended().saturating_sub(stats.forced);
        let completed = by_themselves(&total).saturating_sub(by_themselves(before));
        let forced = alive.saturating_sub(completed + stuck.len() as u64);
        // They are counted, not looked at: there may be millions.
        let left = total.started.saturating_sub(total.ended());
        let closing = left.saturating_sub(stuck.len() as u64);
        StopReport {
            completed,
            terminated: total.terminated.saturating_sub(before.terminated),
            forced,
            closing: closing.min(forced),
            stuck,
            first_forced: self.shutdown.forced.first(),
        }
    }

    /// Returns the report's entry for a process that a thread runs.
    fn stopped_process(&self, pid: Pid) -> StoppedProcess {
        match self.find(pid) {
            Some(task) => task.stopped(),
            None => StoppedProcess::unknown(pid),
        }
    }

    /// Stops the scheduler, or waits until another thread has stopped it. Blocks for at most
    /// `deadline` and a little longer.
    #[cfg_attr(feature = "sim", track_caller)]
    pub(crate) fn stop(self: &Arc<Self>, deadline: Duration) -> Result<StopReport, StopError> {
        Decider::refuse_to_block("stop", "`Rt::stop`");
        if frames::is_inside(&**self) {
            return Err(StopError::Inside);
        }
        let deadline = Deadline::after(deadline);
        // A later `begin_stop` then starts no thread. An earlier call may do the work all the same.
        let _claimed = self.ask_to_stop(deadline);
        let (report, left) = self.stop_or_wait();
        if let Some(reapers) = left {
            // Something may have been queued since, and the program may be about to end.
            self.stopper.reapers.wait(reapers, deadline.plus(GRACE));
        }
        if self.start.is_tried() {
            Ok(report)
        } else {
            Err(StopError::NotStarted(Box::new(report)))
        }
    }

    /// Has the scheduler stopped by a thread of its own, unless a thread is at it.
    pub(crate) fn begin_stop(self: &Arc<Self>, deadline: Duration) {
        if Decider::begin_stop(self, deadline) {
            return;
        }
        if !self.ask_to_stop(Deadline::after(deadline)) {
            return;
        }
        let theirs = Arc::clone(self);
        // The thread does not count, because it waits for all counted threads.
        let started = threads::spawn_detached(threads::builder(self, "stop"), self, move || {
            // The caller may be pinned.
            theirs.worker_slots.unpin();
            let _report = theirs.stop_or_wait();
        });
        if let Err(error) = started {
            log(Level::ERROR, || {
                tracing::error!(
                    target: "ganger::sched", %error,
                    "can't start the thread that stops the scheduler: all processes are forced"
                );
            });
            self.force();
        }
    }

    /// Notes the deadline of a call, and lets a stop under way look again. Returns whether the
    /// caller should have the work done.
    fn ask_to_stop(&self, deadline: Deadline) -> bool {
        self.shutdown.begin_stopping();
        self.stopper.ask(deadline, || self.counters.total());
        self.census.live.poke();
        self.census.threads.poke();
        self.stopper.claim()
    }

    /// Does the work, or blocks while another call does it. Returns the report, and how many
    /// reapers were left if it was another call.
    fn stop_or_wait(self: &Arc<Self>) -> (StopReport, Option<usize>) {
        let mut done = lock(&self.stopper.done);
        if let Some(done) = &*done {
            return (done.report.clone(), Some(done.reapers));
        }
        let report = frames::within(&**self, Frame::Stop, || self.stop_once());
        *done = Some(Done {
            report: report.clone(),
            reapers: self.stopper.reapers.len(),
        });
        (report, None)
    }

    fn stop_once(self: &Arc<Self>) -> StopReport {
        let Self {
            shutdown, stopper, ..
        } = &**self;
        // A start under way is over after this; a later start is refused.
        drop(
            self.start
                .lock
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        if !self.start.is_served() {
            // No worker serves the cancel events.
            stopper.expire();
        }
        log(
            Level::INFO,
            || tracing::info!(target: "ganger::sched", live = self.census.live.get(), "stopping"),
        );

        let is_supervised = self.census.live.get() == 0 || supervisor::start(self);
        if !is_supervised {
            end_waits(self);
            cancel_all(self);
        }
        if !self
            .census
            .live
            .wait(|| 0, || stopper.deadline().remaining())
        {
            shutdown.begin_terminating();
            self.census.live.poke();
            if !is_supervised {
                self.force_what_is_left();
            }
            self.census
                .live
                .wait(|| 0, || stopper.deadline().plus(GRACE).remaining());
        }
        self.halt();
        self.census
            .threads
            .wait(|| 0, || stopper.deadline().plus(GRACE + JOIN).remaining());

        self.reporting.failure_lines.write_rest();
        let report = self.report_since(&stopper.before().unwrap_or_default());
        if report.forced > 0 {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched",
                    forced = report.forced, first = %Named(&report.first_forced),
                    "the deadline has passed, and processes were forced to end"
                );
            });
        }
        if !report.stuck.is_empty() {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched",
                    stuck = report.stuck.len(), first = %Named(&report.stuck),
                    "the deadline has passed, and processes are inside a call that has not returned"
                );
            });
        }
        log(
            Level::INFO,
            || tracing::info!(target: "ganger::sched", ?report, "stopped"),
        );
        report
    }

    /// Ends all that can end at once, for a stop without a thread to wait for the deadline.
    fn force(self: &Arc<Self>) {
        self.stopper.expire();
        end_waits(self);
        self.shutdown.begin_terminating();
        self.force_what_is_left();
        self.halt();
    }

    /// Does the supervisor's work at the deadline without a supervisor.
    fn force_what_is_left(self: &Arc<Self>) {
        terminate_all(self);
        if !self.start.is_served() {
            // No other thread ever would.
            end_queued(self);
        }
    }

    /// Has the workers and the monitor return, and the callers of `run_until_interrupted`. The
    /// first worker that returns closes the timers, or this call where no worker was ever started.
    fn halt(&self) {
        self.shutdown.halt();
        self.stopper.ring();
        self.census.live.poke();
        self.queues.idle.notify_all();
        self.queues.idle.end_monitor_wait();
        self.worker_slots.wake_all();
        if !self.start.is_served() {
            self.close_timers();
        }
    }
}

/// Has a reaper end the processes queued after the halt, unless this thread looks itself, as a
/// thread that ends processes does. A worker looks itself too, but its step may never end.
#[cold]
pub(crate) fn end_after_halt(shared: &Arc<Shared>) {
    if frames::looks_itself(&**shared) {
        return;
    }
    fence_after_halt();
    if !shared.has_work() {
        return;
    }
    let is_worker = local::with(shared, |_| ()).is_some();
    reapers::start(shared, is_worker);
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
