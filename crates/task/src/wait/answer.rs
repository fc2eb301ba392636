//! The wait for the answer to a command.

use crate::error::WaitError;
use crate::step::{self, Step};
use crate::waits::{self, Mark};
use ganger_proc_api::{CancelReason, Command, CommandError, Payload, Tag};
use std::any::Any;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{self, Poll, ready};

/// Waits for the answer to a command: see [`Cx::command`](crate::Cx::command). Dropping the wait
/// takes the command back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct AnswerWait<T> {
    task: u64,
    state: Asked,
    end: End<T>,
}

/// Makes the result of the answer, straight in the place of the caller's result: a later move costs
/// a stall.
type End<T> = fn(Result<Payload, CommandError>) -> Poll<Result<T, WaitError>>;

enum Asked {
    Not(Command, Mark),
    Yielded(Tag),
    Over,
}

impl<T> AnswerWait<T> {
    fn of(task: u64, command: Command, end: End<T>) -> Self {
        let state = Asked::Not(command, Mark::default());
        Self { task, state, end }
    }

    pub(crate) fn task(&self) -> u64 {
        self.task
    }

    /// Polls the wait, unless the answer is the only event of the step.
    #[inline(never)]
    fn poll_rest(&mut self, context: &mut task::Context<'_>) -> Poll<Result<T, WaitError>> {
        match ready!(self.state.poll(self.task, context)) {
            Ok(result) => (self.end)(result),
            Err(reason) => Poll::Ready(Err(WaitError::Cancelled(reason))),
        }
    }
}

impl<T: Any> AnswerWait<T> {
    /// Waits for an answer of type `T`.
    pub(crate) fn typed(task: u64, command: Command) -> Self {
        Self::of(task, command, |result| {
            Poll::Ready(match result {
                Ok(payload) => payload.take().map_err(WaitError::from),
                Err(error) => Err(WaitError::Command(error)),
            })
        })
    }
}

impl AnswerWait<Payload> {
    /// Waits for any answer.
    pub(crate) fn untyped(task: u64, command: Command) -> Self {
        Self::of(task, command, |result| {
            Poll::Ready(result.map_err(WaitError::Command))
        })
    }
}

impl AnswerWait<()> {
    /// Waits for an answer whose value does not count.
    pub(crate) fn done(task: u64, command: Command) -> Self {
        Self::of(task, command, |result| {
            Poll::Ready(result.map(drop).map_err(WaitError::Command))
        })
    }
}

impl<T> Unpin for AnswerWait<T> {}

/// # Panics
/// A poll after the result panics.
impl<T> Future for AnswerWait<T> {
    type Output = Result<T, WaitError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        // The wait takes an answer also when the budget is spent: each command has a single answer.
        if let Asked::Yielded(tag) = this.state {
            let mut result = Ok(Payload::UNIT);
            if step::poll_with(this.task, |step| step.take_here(tag, &mut result)) {
                this.state = Asked::Over;
                return (this.end)(result);
            }
        }
        this.poll_rest(context)
    }
}

impl Asked {
    fn poll(
        &mut self,
        task: u64,
        context: &mut task::Context<'_>,
    ) -> Poll<Result<Result<Payload, CommandError>, CancelReason>> {
        step::poll_with(task, |step| {
            let Self::Yielded(tag) = *self else {
                return self.begin(step, context).map(Err);
            };
            let waker = step.foreign(context.waker());
            let Some(answer) = step.waits.take(tag, waker) else {
                return self.end_if_cancelled(step, context).map(Err);
            };
            *self = Self::Over;
            step.spend();
            match answer {
                waits::Answer::Completion(result) => Poll::Ready(Ok(result)),
                waits::Answer::Exit(_) => unreachable!("a command has no end"),
            }
        })
    }

    /// Polls the wait for the first time.
    #[inline]
    fn begin(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
    ) -> Poll<CancelReason> {
        if step.cancelled().is_some() {
            return self.end_if_cancelled(step, context);
        }
        let Self::Not(command, _) = self else {
            panic!("the answer has been taken: a future is polled until it is ready");
        };
        let waker = step.foreign(context.waker());
        let tag = step.waits.open_answer(waker);
        step.out.yield_out_of(command, tag);
        *self = Self::Yielded(tag);
        Poll::Pending
    }

    /// Ends the wait, without an answer, if the task is asked to finish.
    #[inline]
    fn end_if_cancelled(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
    ) -> Poll<CancelReason> {
        match step.cancelled().cloned() {
            Some(reason) => self.end_cancelled(step, context, reason),
            None => Poll::Pending,
        }
    }

    #[cold]
    #[inline(never)]
    fn end_cancelled(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
        reason: CancelReason,
    ) -> Poll<CancelReason> {
        // A loop that ignores its cancellation ends wait after wait.
        if let Self::Not(_, mark) = self
            && !step.may_be_ready(mark, context.waker())
        {
            return Poll::Pending;
        }
        self.abandon(step);
        step.spend();
        Poll::Ready(reason)
    }

    /// Takes the command back, if it has been yielded and is not answered.
    fn abandon(&mut self, step: &mut Step<'_, '_>) {
        if let Self::Yielded(tag) = mem::replace(self, Self::Over)
            && step.waits.close(tag, step.events)
        {
            step.out.cancel(tag);
        }
    }
}

impl<T> Drop for AnswerWait<T> {
    fn drop(&mut self) {
        if let Asked::Yielded(_) = self.state {
            // Outside of its task's step, the task is ending, or the wait has left it.
            step::with(self.task, |step| self.state.abandon(step));
        }
    }
}

impl<T> fmt::Debug for AnswerWait<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerWait").finish_non_exhaustive()
    }
}
