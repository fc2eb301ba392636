//! The wait for the end of a process.

use crate::error::WaitError;
use crate::step;
use crate::waits::{self, Mark};
#[cfg(feature = "sched")]
use ganger_proc_api::SubmitError;
use ganger_proc_api::{Context, ExitCause, MonitorError, Pid, Tag};
#[cfg(feature = "sched")]
use ganger_sched::{Address, ContextExt, Spawner};
use ganger_wait::watch::{self, Asked, END};
use std::fmt;
use std::pin::Pin;
use std::task::{self, Poll};

/// Waits for the end of a process: see [`Cx::monitor`](crate::Cx::monitor).
#[must_use = "the monitor ends when it is dropped"]
pub struct ExitWait {
    ctx: Context,
    task: u64,
    target: Pid,
    state: Result<Option<Tag>, MonitorError>,
    mark: Mark,
    /// The wait as watchers know it, from its first poll on.
    asked: Asked,
}

impl ExitWait {
    #[track_caller]
    pub(crate) fn begin(ctx: &Context, task: u64, target: Pid) -> Self {
        let tag = step::poll_with(task, |step| step.waits.open(None, Some(target)));
        let state = ctx.monitor(target, tag);
        if state.is_err() {
            step::with(task, |step| step.waits.close(tag, step.events));
        }
        Self {
            ctx: ctx.clone(),
            task,
            target,
            state: state.map(|()| Some(tag)),
            mark: Mark::default(),
            asked: Asked::default(),
        }
    }

    /// Starts a process under a monitor of the task.
    #[cfg(feature = "sched")]
    #[track_caller]
    pub(crate) fn spawn<T: HasPid>(
        ctx: &Context,
        task: u64,
        start: impl FnOnce(Spawner<Context>) -> Result<T, SubmitError>,
    ) -> Result<(T, Self), SubmitError> {
        let tag = step::poll_with(task, |step| step.waits.open(None, None));
        // A notice waits for the next step of the task, which knows the PID.
        let mut monitor = Self {
            ctx: ctx.clone(),
            task,
            target: ctx.pid(),
            state: Ok(Some(tag)),
            mark: Mark::default(),
            asked: Asked::default(),
        };
        let child = start(ctx.monitored(tag))?;
        monitor.target = child.pid();
        step::with(task, |step| step.waits.wait_is_of(tag, monitor.target));
        Ok((child, monitor))
    }
}

/// A handle of a started process.
#[cfg(feature = "sched")]
pub trait HasPid {
    /// Returns the process's PID.
    fn pid(&self) -> Pid;
}

#[cfg(feature = "sched")]
impl HasPid for Pid {
    fn pid(&self) -> Pid {
        *self
    }
}

#[cfg(feature = "sched")]
impl<M> HasPid for Address<M> {
    fn pid(&self) -> Pid {
        Address::pid(self)
    }
}

/// # Panics
/// A poll after the result panics.
impl Future for ExitWait {
    type Output = Result<ExitCause, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let tag = match this.state {
            Ok(Some(tag)) => tag,
            Ok(None) => panic!("the monitor is over: a future is polled until it is ready"),
            Err(error) => return Poll::Ready(Err(WaitError::Monitor(error))),
        };
        if watch::is_on() {
            // The wait of an earlier poll may have been left.
            this.asked = watch::awaits_beside(END, this.target);
        }
        let polled = step::poll_with(this.task, |step| {
            let waker = step.foreign(context.waker());
            // As an answer, the notice is taken also when the budget is spent.
            let result = match (step.waits.take(tag, waker), step.cancelled().cloned()) {
                (Some(waits::Answer::Exit(cause)), _) => {
                    this.state = Ok(None);
                    Ok(cause)
                }
                (_, Some(_)) if !step.may_be_ready(&mut this.mark, context.waker()) => {
                    return Poll::Pending;
                }
                (_, Some(reason)) => Err(WaitError::Cancelled(reason)),
                _ => return Poll::Pending,
            };
            step.spend();
            Poll::Ready(result)
        });
        if polled.is_ready() {
            this.asked = Asked::default();
        }
        polled
    }
}

impl Drop for ExitWait {
    fn drop(&mut self) {
        if let Ok(Some(tag)) = self.state
            && step::with(self.task, |step| step.waits.close(tag, step.events)) == Some(true)
        {
            self.ctx.demonitor(self.target, tag);
        }
    }
}

impl fmt::Debug for ExitWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ExitWait").field(&self.target).finish()
    }
}
