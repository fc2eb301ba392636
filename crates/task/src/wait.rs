//! The waits of a task for one thing each, as futures.

use crate::error::WaitError;
use crate::step::{self, Step};
use crate::waits::{self, Mark};
#[cfg(feature = "sched")]
use ganger_proc_api::SubmitError;
use ganger_proc_api::{
    Command, Context, Event, Events, ExitCause, Message, MonitorError, Payload, Pid, Tag, WrongType,
};
#[cfg(feature = "sched")]
use ganger_sched::{Address, ContextExt, Spawner};
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::task::{self, Poll};

/// Takes the next message of the type.
pub(crate) fn next<M: Send + 'static>(events: &mut Events<'_>) -> Option<M> {
    events.find_map(|it| it.into_message().ok()?.take().ok())
}

/// Waits for a message: see [`Cx::recv`](crate::Cx::recv) and
/// [`Cx::recv_where`](crate::Cx::recv_where).
#[must_use = "a future does nothing unless it is awaited"]
pub struct Recv<M, P> {
    task: u64,
    mark: Mark,
    wanted: P,
    takes: PhantomData<fn(&M)>,
}

/// Any message is wanted.
#[derive(Debug)]
pub struct Any;

/// A message is wanted for which that holds.
pub struct Where<P> {
    wanted: P,
    /// The last step in which it has looked.
    looked: u64,
}

impl<P> Where<P> {
    pub(crate) fn new(wanted: P) -> Self {
        let looked = 0;
        Self { wanted, looked }
    }
}

impl<P> fmt::Debug for Where<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Where").finish_non_exhaustive()
    }
}

impl<M, P> Recv<M, P> {
    pub(crate) fn new(task: u64, wanted: P) -> Self {
        Self {
            task,
            mark: Mark::default(),
            wanted,
            takes: PhantomData,
        }
    }
}

impl<M, P> Unpin for Recv<M, P> {}

/// What a receive takes out of the events.
pub trait Wanted<M: Send + 'static> {
    #[doc(hidden)]
    fn take(&mut self, events: &mut Events<'_>, step: u64) -> Option<M>;
}

impl<M: Send + 'static> Wanted<M> for Any {
    fn take(&mut self, events: &mut Events<'_>, _: u64) -> Option<M> {
        next::<M>(events)
    }
}

impl<M, P> Wanted<M> for Where<P>
where
    M: Send + Sync + 'static,
    P: FnMut(&M) -> bool,
{
    fn take(&mut self, events: &mut Events<'_>, step: u64) -> Option<M> {
        let only_new = self.looked + 1 == step;
        self.looked = step;
        let is_wanted = |event: &Event| {
            let message = event.message();
            message
                .and_then(Message::look)
                .is_some_and(&mut self.wanted)
        };
        let event = match events.peek() {
            Some(Event::Message(_)) if only_new => events.take_new_where(is_wanted),
            _ => events.take_where(is_wanted),
        };
        event?.into_message().ok()?.take().ok()
    }
}

impl<M, P> Future for Recv<M, P>
where
    M: Send + 'static,
    P: Wanted<M>,
{
    type Output = Option<M>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        step::poll_with(this.task, |step| {
            if !step.may_be_ready(&mut this.mark, context.waker()) {
                return Poll::Pending;
            }
            if step.cancelled().is_some() {
                step.spend();
                return Poll::Ready(None);
            }
            let message = this.wanted.take(step.events, step.waits.step);
            if message.is_some() {
                step.spend();
                return Poll::Ready(message);
            }
            step.watch(&mut this.mark, context.waker());
            Poll::Pending
        })
    }
}

impl<M, P> Drop for Recv<M, P> {
    fn drop(&mut self) {
        step::forget(self.task, &mut self.mark);
    }
}

impl<M, P> fmt::Debug for Recv<M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv").finish_non_exhaustive()
    }
}

/// Waits for the answer to a command: see [`Cx::command`](crate::Cx::command). Dropping it takes
/// the command back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Answer<T> {
    task: u64,
    state: Asked,
    take: fn(Payload) -> Result<T, WrongType>,
}

enum Asked {
    Not(Command, Mark),
    Yielded(Tag),
    Over,
}

impl<T> Answer<T> {
    pub(crate) fn new(
        task: u64,
        command: Command,
        take: fn(Payload) -> Result<T, WrongType>,
    ) -> Self {
        let state = Asked::Not(command, Mark::default());
        Self { task, state, take }
    }

    pub(crate) fn task(&self) -> u64 {
        self.task
    }
}

impl<T> Unpin for Answer<T> {}

/// # Panics
/// Polling it again after it was ready panics.
impl<T> Future for Answer<T> {
    type Output = Result<T, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = step::poll_with(this.task, |step| this.state.poll(step, context));
        polled.map(|answer| Ok((this.take)(answer?)?))
    }
}

impl Asked {
    fn poll(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
    ) -> Poll<Result<Payload, WaitError>> {
        let waker = step.foreign(context.waker());
        // An answer is taken also when the budget is spent: there is one for each command.
        if let Self::Yielded(tag) = *self
            && let Some(answer) = step.waits.take(tag, waker)
        {
            *self = Self::Over;
            step.spend();
            return Poll::Ready(match answer {
                waits::Answer::Completion(result) => result.map_err(WaitError::Command),
                waits::Answer::Exit(_) => unreachable!("a command has no end"),
            });
        }
        if let Some(reason) = step.cancelled().cloned() {
            // A loop that ignores its cancellation ends one wait after another.
            if let Self::Not(_, mark) = self
                && !step.may_be_ready(mark, context.waker())
            {
                return Poll::Pending;
            }
            self.abandon(step);
            step.spend();
            return Poll::Ready(Err(WaitError::Cancelled(reason)));
        }
        match mem::replace(self, Self::Over) {
            Self::Not(command, _) => {
                let tag = step.waits.open(waker, None);
                step.out.yield_command(command, tag);
                *self = Self::Yielded(tag);
            }
            Self::Yielded(tag) => *self = Self::Yielded(tag),
            Self::Over => panic!("the answer has been taken: a future is polled until it is ready"),
        }
        Poll::Pending
    }

    /// Takes the command back, if it has been yielded and is not answered.
    fn abandon(&mut self, step: &mut Step<'_, '_>) {
        if let Self::Yielded(tag) = mem::replace(self, Self::Over)
            && step.waits.close(tag)
        {
            step.out.cancel(tag);
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        if let Asked::Yielded(_) = self.state {
            // Outside of its task's step, the task is ending, or the wait has left it.
            step::with(self.task, |step| self.state.abandon(step));
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}

/// Waits for the end of a process: see [`Cx::monitor`](crate::Cx::monitor).
#[must_use = "the monitor ends when it is dropped"]
pub struct Monitor {
    ctx: Context,
    task: u64,
    target: Pid,
    state: Result<Option<Tag>, MonitorError>,
    mark: Mark,
}

impl Monitor {
    #[track_caller]
    pub(crate) fn begin(ctx: &Context, task: u64, target: Pid) -> Self {
        let tag = step::poll_with(task, |step| step.waits.open(None, Some(target)));
        let state = ctx.monitor(target, tag);
        if state.is_err() {
            step::with(task, |step| step.waits.close(tag));
        }
        Self {
            ctx: ctx.clone(),
            task,
            target,
            state: state.map(|()| Some(tag)),
            mark: Mark::default(),
        }
    }

    /// Has a process started that the task monitors from its first moment on.
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
        };
        let child = start(ctx.monitored(tag))?;
        monitor.target = child.pid();
        step::with(task, |step| step.waits.wait_is_of(tag, monitor.target));
        Ok((child, monitor))
    }
}

/// What stands for a process that has been started.
#[cfg(feature = "sched")]
pub trait HasPid {
    /// The process's PID.
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
/// Polling it again after it was ready panics.
impl Future for Monitor {
    type Output = Result<ExitCause, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let tag = match this.state {
            Ok(Some(tag)) => tag,
            Ok(None) => panic!("the monitor is over: a future is polled until it is ready"),
            Err(error) => return Poll::Ready(Err(WaitError::Monitor(error))),
        };
        step::poll_with(this.task, |step| {
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
        })
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Ok(Some(tag)) = self.state
            && step::with(self.task, |step| step.waits.close(tag)) == Some(true)
        {
            self.ctx.demonitor(self.target, tag);
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monitor").field(&self.target).finish()
    }
}
