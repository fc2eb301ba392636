//! Messages to be sent later by a process.

use crate::process::exit_action::ExitAction;
use crate::runtime::cell::{ProcessCell, Task};
use crate::send::exit_requests;
use ganger_proc_api::{Context, Envelope, Pid, Withdrawal};
use ganger_time::{Timer, Timers};
use std::time::Duration;

/// Returns the timers of the scheduler of the context's process.
pub(super) fn of(ctx: &Context) -> &Timers {
    match ctx.backend_ref::<ProcessCell>() {
        Some(task) => &task.shared.timing.timers,
        None => no_scheduler(ctx.pid()),
    }
}

#[cold]
fn no_scheduler(pid: Pid) -> ! {
    panic!("{pid} has no scheduler, and so no timers: its context is that of a unit test")
}

/// Sends a message of the context's process after `delay`.
pub(super) fn send_after(ctx: &Context, delay: Duration, envelope: Envelope) -> Timer {
    let target = envelope.target;
    let timer = match ctx.backend_ref::<ProcessCell>() {
        Some(task) => task.shared.send_after(delay, envelope),
        None => no_scheduler(ctx.pid()),
    };
    if target == ctx.pid()
        && let Some(task) = ctx.backend::<ProcessCell>()
    {
        end_with_incarnation(&task, &timer);
    }
    timer
}

/// Takes back a message of a process's incarnation to itself, if it has not been sent.
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

/// Ends the timer with the present incarnation: after a restart in place, the next incarnation does
/// not get the message.
fn end_with_incarnation(task: &Task, timer: &Timer) {
    if let Some(incarnation) = task.incarnation_end() {
        let timer = timer.clone();
        let _ended = exit_requests::add_own(task, Box::new(TakeBack { timer, incarnation }));
    }
}
