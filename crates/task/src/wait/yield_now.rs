//! The wait for the turns of other processes.

use crate::step::{self, Then};
use ganger_wait::watch;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until other processes have had their turns: see [`Cx::yield_now`](crate::Cx::yield_now).
#[must_use = "a future does nothing unless it is awaited"]
#[derive(Debug)]
pub struct YieldNow {
    task: u64,
    /// The step of the first poll; 0 before that.
    since: u64,
}

impl YieldNow {
    pub(crate) fn new(task: u64) -> Self {
        Self { task, since: 0 }
    }
}

impl Future for YieldNow {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        step::poll_with(this.task, |step| {
            let now = step.waits.step;
            if this.since != 0 && this.since < now {
                return Poll::Ready(());
            }
            watch::leaves();
            this.since = now;
            step.step_again(Then::YieldNow, context.waker());
            Poll::Pending
        })
    }
}
