//! What this crate adds to the context of a process.

use crate::timer::Timer;
use crate::timers::Timers;
use ganger_proc_api::{Context, Package, Payloads, Pid, Symbol};
use ganger_sched::{ContextExt, Moment};
use std::sync::Arc;
use std::time::Duration;

/// What this crate adds to [`Context`].
///
/// # Panics
/// Each call panics when the process's scheduler was built without [`Timers`].
pub trait TimerContext {
    /// The timers of the scheduler.
    fn timers(&self) -> Arc<Timers>;

    /// The time, by the clock of the scheduler.
    fn now(&self) -> Moment;

    /// Sends a message after that time, from this process: see [`Timers::send_after`]. It is sent
    /// also when this process has ended by then.
    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl Into<Payloads>,
    ) -> Timer;
}

impl TimerContext for Context {
    fn timers(&self) -> Arc<Timers> {
        self.source().unwrap_or_else(|| no_timers(self))
    }

    fn now(&self) -> Moment {
        borrowed(self).now()
    }

    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl Into<Payloads>,
    ) -> Timer {
        let package = Package::new(self.pid(), target, topic, payloads);
        borrowed(self).send_after(delay, package)
    }
}

fn borrowed(ctx: &Context) -> &Timers {
    ctx.source_ref().unwrap_or_else(|| no_timers(ctx))
}

#[cold]
fn no_timers(ctx: &Context) -> ! {
    panic!(
        "the scheduler of {} has no timers: give its builder `.source(Timers)`",
        ctx.pid()
    )
}
