//! A process that sets timers and cancels them.

use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult};
use ganger_time::{TimerContext, TimerOutput};
use std::time::Duration;

/// No timer waits for so long.
const LONG: Duration = Duration::from_secs(60);

/// Sets a timer in each of that many steps, and cancels it in the same one.
pub(crate) struct InOneStep {
    pub(crate) left: u64,
}

impl Process for InOneStep {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                let timer = ctx.send_after(LONG, ctx.pid(), "late", ());
                timer.cancel().ok_or("it has fired")?;
                out.go_on();
            }
            None => out.done(()),
        }
        Ok(())
    }
}

/// Sleeps in each of that many steps, and takes the sleep back in the next one.
pub(crate) struct AcrossSteps {
    pub(crate) left: u64,
}

impl Process for AcrossSteps {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !events.is_empty() {
            return Err(BoxError::from("a sleep that was taken back has ended"));
        }
        // Of the first step there is none.
        out.cancel(self.left + 1);
        match self.left.checked_sub(1) {
            Some(left) => {
                out.sleep(LONG, self.left);
                self.left = left;
                out.go_on();
            }
            None => out.done(()),
        }
        Ok(())
    }
}
