//! The wait for the answer to a command.

use crate::error::WaitError;
use crate::step::{self, Step};
use crate::waits::{self, Mark};
use ganger_proc_api::{Command, Payload, Tag, WrongType};
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
        // The wait takes an answer also when the budget is spent: each command has a single answer.
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
            // A loop that ignores its cancellation ends wait after wait.
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
