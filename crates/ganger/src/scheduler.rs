//! A scheduler with what most programs use.

use ganger_sched::{BuildError, Built, StartError};
use std::ops::Deref;

/// Runs processes on worker threads: the [scheduler](ganger_sched::Scheduler) of `ganger-sched`,
/// which it dereferences to. Its [`Handle`](crate::Handle) has the calls for its users. Dropping it
/// stops it.
///
/// With the feature `time` it has timers, which cost nothing until the first one is set. A builder
/// that is given other [`Timers`](crate::time::Timers) has those.
///
/// ```
/// use ganger::prelude::*;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::start_default()?;
/// # #[cfg(all(feature = "task", feature = "time"))] {
/// let answer = scheduler.spawn_task(async |cx: Cx| {
///     cx.sleep(Duration::from_millis(5)).await?;
///     Ok(42)
/// })?;
/// assert_eq!(answer.wait().into_result()?.as_i64(), Some(42));
/// # }
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct Scheduler(ganger_sched::Scheduler);

/// Builds a [`Scheduler`]. Every setting has a default that just works.
///
/// ```
/// use ganger::prelude::*;
///
/// let scheduler = Scheduler::builder().workers(2).host("orders").start()?;
/// # Ok::<(), BoxError>(())
/// ```
pub type Builder = ganger_sched::Builder<Scheduler>;

impl Scheduler {
    /// A builder with the defaults.
    pub fn builder() -> Builder {
        ganger_sched::Builder::new().builds()
    }

    /// A started scheduler with the defaults: a worker for each core, and no commands of its user.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start_default() -> Result<Self, StartError> {
        Self::builder().start()
    }
}

impl Built for Scheduler {
    fn build(builder: ganger_sched::Builder) -> Result<Self, BuildError> {
        Ok(Self(with_timers(builder).build()?))
    }

    fn start_built(&self) -> Result<(), StartError> {
        self.0.start()
    }
}

impl Deref for Scheduler {
    type Target = ganger_sched::Scheduler;

    fn deref(&self) -> &ganger_sched::Scheduler {
        &self.0
    }
}

#[cfg(feature = "time")]
fn with_timers(builder: ganger_sched::Builder) -> ganger_sched::Builder {
    ganger_time::Timers::add_to(builder)
}

#[cfg(not(feature = "time"))]
fn with_timers(builder: ganger_sched::Builder) -> ganger_sched::Builder {
    builder
}
