//! Waits around other futures: until a cancellation, within a time, in a shield.
//!
//! These waits are types with names. An `async` function over any future makes the compiler forget
//! the lifetimes in the future's type: it would reject a task that waits for a lock of `&'static
//! str`.

use super::answer::AnswerWait;
use crate::error::WaitError;
use crate::step;
use crate::waits::Mark;
use ganger_proc_api::CancelReason;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Waits until the task is asked to finish: see [`Cx::cancelled`](crate::Cx::cancelled).
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct Cancelled {
    task: u64,
    mark: Mark,
}

impl Cancelled {
    pub(crate) fn new(task: u64) -> Self {
        let mark = Mark::default();
        Self { task, mark }
    }
}

impl Future for Cancelled {
    type Output = CancelReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CancelReason> {
        let this = self.get_mut();
        step::poll_with(this.task, |step| match step.cancelled() {
            Some(reason) => Poll::Ready(reason.clone()),
            None => {
                step.watch(&mut this.mark, context.waker());
                Poll::Pending
            }
        })
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        step::forget(self.task, &mut self.mark);
    }
}

/// Checks whether a wait polls its future in this step, and returns the budget before the poll. A
/// cancellation comes first: the future takes no value then.
fn begin(task: u64, mark: &mut Mark, waker: &Waker) -> Result<u32, Poll<WaitError>> {
    step::poll_with(task, |step| {
        if !step.may_be_ready(mark, waker) {
            return Err(Poll::Pending);
        }
        if let Some(reason) = step.cancelled().cloned() {
            step.spend();
            return Err(Poll::Ready(WaitError::Cancelled(reason)));
        }
        Ok(step.budget)
    })
}

pin_project! {
    /// Waits for a future, but no longer than the task is wanted: see
    /// [`Cx::until_cancelled`](crate::Cx::until_cancelled).
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct UntilCancelled<F> {
        #[pin]
        pub(crate) future: F,
        pub(crate) cancelled: Cancelled,
    }
}

impl<F: Future> Future for UntilCancelled<F> {
    type Output = Result<F::Output, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Cancelled { task, mark } = this.cancelled;
        let waker = context.waker();
        let budget = match begin(*task, mark, waker) {
            Ok(budget) => budget,
            Err(over) => return over.map(Err),
        };
        let polled = this.future.poll(context);
        step::poll_with(*task, |step| match &polled {
            Poll::Ready(_) => step.spend_once(budget),
            Poll::Pending => step.watch(mark, waker),
        });
        polled.map(Ok)
    }
}

pin_project! {
    /// Waits for a future without cancellations: see [`Cx::shield`](crate::Cx::shield).
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Shielded<F> {
        #[pin]
        pub(crate) future: F,
        pub(crate) task: u64,
    }
}

impl<F: Future> Future for Shielded<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        step::poll_with(*this.task, |step| step.shields += 1);
        let _shield = Shield(*this.task);
        this.future.poll(context)
    }
}

/// The wait is inside of a shield until this is dropped.
struct Shield(u64);

impl Drop for Shield {
    fn drop(&mut self) {
        step::with(self.0, |step| step.shields -= 1);
    }
}

pin_project! {
    /// Waits for a future, but no longer than some time: see [`Cx::timeout`](crate::Cx::timeout).
    #[must_use = "futures do nothing unless they are awaited"]
    pub struct Timeout<F> {
        #[pin]
        pub(crate) future: F,
        pub(crate) sleep: AnswerWait<()>,
        pub(crate) mark: Mark,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let task = this.sleep.task();
        let budget = match begin(task, this.mark, context.waker()) {
            Ok(budget) => budget,
            Err(over) => return over.map(Err),
        };
        if let Poll::Ready(result) = this.future.poll(context) {
            step::poll_with(task, |step| step.spend_once(budget));
            return Poll::Ready(Ok(result));
        }
        let sleep = Pin::new(this.sleep).poll(context);
        sleep.map(|slept| Err(slept.err().unwrap_or(WaitError::TimedOut)))
    }
}

macro_rules! debug {
    ($($name:ident)+) => { $(
        impl<F> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+ };
}

debug!(UntilCancelled Shielded Timeout);
