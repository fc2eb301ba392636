//! Waits around other futures: until a cancellation, within a time, in a shield.
//!
//! They have names, since a function that is `async` over any future makes the compiler forget the
//! lifetimes in that future's type: a task that waits for a lock of `&'static str` would not be
//! accepted.

use crate::error::WaitError;
use crate::step;
use crate::wait::Answer;
use ganger_proc_api::CancelReason;
use pin_project_lite::pin_project;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until the task is asked to finish: see [`Cx::cancelled`](crate::Cx::cancelled).
#[must_use = "futures do nothing unless they are awaited"]
#[derive(Debug)]
pub struct Cancelled {
    pub(crate) task: u64,
}

impl Future for Cancelled {
    type Output = CancelReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CancelReason> {
        step::poll_with(self.task, |step| match step.cancelled() {
            Some(reason) => Poll::Ready(reason.clone()),
            None => {
                step.watch(context.waker());
                Poll::Pending
            }
        })
    }
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
        let task = this.cancelled.task;
        if step::poll_with(task, |step| step.is_spent(context.waker())) {
            return Poll::Pending;
        }
        if let Poll::Ready(result) = this.future.poll(context) {
            step::poll_with(task, |step| step.spend());
            return Poll::Ready(Ok(result));
        }
        let cancelled = Pin::new(this.cancelled).poll(context);
        cancelled.map(|reason| Err(WaitError::Cancelled(reason)))
    }
}

pin_project! {
    /// Waits for a future that no cancellation disturbs: see [`Cx::shield`](crate::Cx::shield).
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
        pub(crate) sleep: Answer<()>,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(result) = this.future.poll(context) {
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
