//! What this crate adds to the context of a process.

use crate::timer::Timer;
use crate::timers::Timers;
use ganger_proc_api::{Context, Envelope, IntoPayloads, Pid, Symbol, Withdrawal};
use ganger_sched::{ContextExt, ExitAction, Instant};
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
    fn now(&self) -> Instant;

    /// Sends a message after that time, from this process: see [`Timers::send_after`]. It is sent
    /// also when this process has ended by then. One to this process itself is taken back when a
    /// supervisor restarts the process in place before that.
    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Timer;
}

impl TimerContext for Context {
    fn timers(&self) -> Arc<Timers> {
        self.source().unwrap_or_else(|| no_timers(self))
    }

    fn now(&self) -> Instant {
        borrowed(self).now()
    }

    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Timer {
        let envelope = Envelope::new(self.pid(), target, topic, payloads);
        let timer = borrowed(self).send_after(delay, envelope);
        if target == self.pid() {
            end_with_incarnation(self, &timer);
        }
        timer
    }
}

/// Takes a message back that an incarnation of a process has put off for itself.
struct TakeBack {
    timer: Timer,
    incarnation: Withdrawal,
}

impl ExitAction for TakeBack {
    fn release(&mut self, _: Pid) {
        // At the end of the process it is sent all the same, and becomes a dead letter.
        if self.incarnation.is_withdrawn() {
            self.timer.cancel();
        }
    }

    fn is_over(&self) -> bool {
        self.timer.read().is_none()
    }
}

/// When the process is restarted in place, the next incarnation does not get the message.
fn end_with_incarnation(ctx: &Context, timer: &Timer) {
    let process = ctx.untyped_address();
    if let Some(incarnation) = process.and_then(|it| it.incarnation_end()) {
        let timer = timer.twin();
        let _ended = ctx.add_exit_action(Box::new(TakeBack { timer, incarnation }));
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
