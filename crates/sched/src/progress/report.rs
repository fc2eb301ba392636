//! The results of a stop.

use super::stopped::{Named, StoppedProcess};
use ganger_proc_api::Pid;
use std::fmt;

/// A thread asked to wait for a process of a scheduler that has not been started. Nothing runs
/// then, so the wait would not end.
///
/// The reason inside the error, or the exit reason, of the refused wait. A later start of the
/// scheduler by another thread changes nothing: start the waiting thread after the scheduler.
///
/// ```
/// use ganger_proc_api::{BoxError, ExitReason, process_fn};
/// use ganger_sched::{NotStarted, Scheduler};
///
/// let scheduler = Scheduler::builder().build()?;
/// let handle = scheduler.spawn(process_fn(|_, _, out| Ok(out.done(42))))?;
/// let ExitReason::Failed(error) = handle.wait() else {
///     panic!("nothing has run")
/// };
/// assert!(error.is::<NotStarted>());
/// assert!(error.to_string().contains("`Builder::start`"));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, thiserror::Error)]
#[error(
    "the scheduler has not been started, so nothing runs, and a wait would not end; start it by \
     `Builder::start` in the place of `build`, or by `Scheduler::start`"
)]
#[non_exhaustive]
pub struct NotStarted;

/// Why a scheduler was not stopped, or a fault of its stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StopError {
    /// `stop` would wait for its own caller: a step, `init`, `close`, a hook, a handler, a
    /// destructor or a `tracing` subscriber, on a thread of the scheduler or in a submission to it.
    #[error(
        "`stop` would wait for the call of the scheduler that it is made from; use \
         `begin_stop(deadline)`, which returns at once"
    )]
    Inside,
    /// The scheduler has been stopped, and had never been started: its processes were ended, and
    /// had taken no step. The report is inside.
    #[error(
        "the scheduler had never been started, and its {} processes have ended without a step; \
         start it by `Builder::start` in the place of `build`, or by `Scheduler::start`",
        .0.forced
    )]
    NotStarted(Box<StopReport>),
}

/// The ends of the processes that were alive at the begin of a stop.
///
/// When `closing` is not zero, the workers continued during the count: a process or two just ending
/// may count as stuck.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StopReport {
    /// Processes that ended by themselves, before the deadline or in the step under way at the
    /// deadline.
    pub completed: u64,
    /// How many of these were terminated meanwhile, by supervisors for which they were too slow to
    /// finish for instance.
    pub terminated: u64,
    /// Processes that had not ended, and were terminated: they take no further step.
    pub forced: u64,
    /// How many of the forced ones were still to be closed when `stop` returned, because they were
    /// too many for its time. The workers continue with them, or other threads where workers are
    /// stuck: up to sixteen.
    pub closing: u64,
    /// Processes whose step, `close` or exit hook had not returned when `stop` did. They end when
    /// it returns.
    pub stuck: Vec<StoppedProcess>,
    /// The first [forced](Self::forced) processes already closed, up to 16 of them.
    pub first_forced: Vec<StoppedProcess>,
}

impl StopReport {
    /// Returns whether the process is [stuck](Self::stuck).
    #[must_use]
    pub fn is_stuck(&self, pid: Pid) -> bool {
        self.stuck.iter().any(|it| it.pid == pid)
    }
}

impl fmt::Display for StopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} completed", self.completed)?;
        if self.terminated > 0 {
            write!(f, " ({} of them terminated)", self.terminated)?;
        }
        write!(f, ", {} forced", self.forced)?;
        if !self.first_forced.is_empty() {
            write!(f, " ({})", Named(&self.first_forced))?;
        }
        if self.closing > 0 {
            write!(f, ", {} of these to be closed", self.closing)?;
        }
        write!(f, ", {} stuck", self.stuck.len())?;
        if !self.stuck.is_empty() {
            write!(f, " ({})", Named(&self.stuck))?;
        }
        Ok(())
    }
}
