//! The wait for the answer to a command.

use crate::error::WaitError;
use crate::step::{self, Step};
use crate::waits::{self, Mark};
use ganger_proc_api::{CancelReason, Command, Payload, Tag, WrongType};
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{self, Poll};

/// Waits for the answer to a command: see [`Cx::command`](crate::Cx::command). Dropping the wait
/// takes the command back.
#[must_use = "a future does nothing unless it is awaited"]
pub struct AnswerWait<T> {
    task: u64,
    state: Asked,
    take: fn(Payload) -> Result<T, WrongType>,
}

enum Asked {
    Not(Command, Mark),
    Yielded(Tag),
    Over,
}

impl<T> AnswerWait<T> {
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

impl<T> Unpin for AnswerWait<T> {}

/// # Panics
/// A poll after the result panics.
impl<T> Future for AnswerWait<T> {
    type Output = Result<T, WaitError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let answer = step::poll_with(this.task, |step| match this.state {
            Asked::Yielded(tag) => {
                let waker = step.foreign(context.waker());
                // The wait takes an answer also when the budget is spent: each command has a single
                // answer.
                let Some(answer) = step.waits.take(tag, waker, step.events) else {
                    return this.state.end_if_cancelled(step, context).map(Err);
                };
                this.state = Asked::Over;
                step.spend();
                Poll::Ready(Ok(answer))
            }
            _ => this.state.begin(step, context).map(Err),
        });
        let Poll::Ready(answer) = answer else {
            return Poll::Pending;
        };
        Poll::Ready(match answer? {
            waits::Answer::Completion(Ok(payload)) => Ok((this.take)(payload)?),
            waits::Answer::Completion(Err(error)) => Err(WaitError::Command(error)),
            waits::Answer::Exit(_) => unreachable!("a command has no end"),
        })
    }
}

impl Asked {
    /// The first poll.
    #[inline]
    fn begin(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
    ) -> Poll<WaitError> {
        if step.cancelled().is_some() {
            return self.end_if_cancelled(step, context);
        }
        let Self::Not(command, _) = mem::replace(self, Self::Over) else {
            panic!("the answer has been taken: a future is polled until it is ready");
        };
        let waker = step.foreign(context.waker());
        let tag = step.waits.open_answer(waker);
        step.out.yield_command(command, tag);
        *self = Self::Yielded(tag);
        Poll::Pending
    }

    /// Ends the wait, without an answer, if the task is asked to finish.
    #[inline]
    fn end_if_cancelled(
        &mut self,
        step: &mut Step<'_, '_>,
        context: &mut task::Context<'_>,
    ) -> Poll<WaitError> {
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
    ) -> Poll<WaitError> {
        // A loop that ignores its cancellation ends wait after wait.
        if let Self::Not(_, mark) = self
            && !step.may_be_ready(mark, context.waker())
        {
            return Poll::Pending;
        }
        self.abandon(step);
        step.spend();
        Poll::Ready(WaitError::Cancelled(reason))
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
