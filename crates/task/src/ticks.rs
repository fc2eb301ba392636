//! The ticks of an interval.

use crate::cx::Cx;
use crate::error::WaitError;
use crate::wait::AnswerWait;
use ganger_proc_api::{Context, Tag};
use ganger_sched::ContextExt;
use ganger_time::{Interval, MissedTicks};
use std::fmt;
use std::time::Duration;

/// Waits have tags of their own.
const NO_TAG: Tag = 0;

/// An interval of a task, without drift: see [`Cx::every`].
pub struct Ticks {
    ctx: Context,
    task: u64,
    every: Interval,
}

impl<M: Send + 'static> Cx<M> {
    /// Creates ticks, a tick after each period from now on.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use std::time::Duration;
    /// use ganger_task::Cx;
    ///
    /// # async fn body(cx: Cx<u64>) -> Result<(), BoxError> {
    /// let mut ticks = cx.every(Duration::from_secs(1));
    /// while !cx.is_cancelled() {
    ///     let seconds = ticks.next().await?;
    ///     println!("{seconds} s later");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn every(&self, period: Duration) -> Ticks {
        let ctx = self.context().clone();
        let mut every = Interval::new(period, NO_TAG);
        every.begin(ctx.now().after(period));
        Ticks {
            ctx,
            task: self.task(),
            every,
        }
    }
}

impl Ticks {
    /// Sets the policy for missed ticks. Default: [`MissedTicks::Skip`].
    #[must_use]
    pub fn missed(self, missed: MissedTicks) -> Self {
        let every = self.every.missed(missed);
        Self { every, ..self }
    }

    /// Waits for the next tick. Returns the number of ticks, from 1 up: see [`Interval::tick`].
    /// Dropping the wait loses no tick.
    ///
    /// # Errors
    /// [`WaitError::Cancelled`] when the task is asked to finish, and `Command` with
    /// [`ZeroPeriod`](ganger_time::ZeroPeriod) inside.
    pub async fn next(&mut self) -> Result<u64, WaitError> {
        AnswerWait::done(self.task, self.every.command()).await?;
        Ok(self.every.take(self.ctx.now()))
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticks").field(&self.every).finish()
    }
}
