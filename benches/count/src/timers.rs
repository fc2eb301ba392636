//! Processes that set timers and cancel them.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult};
use ganger_sched::ContextExt;
use std::time::Duration;

/// The number of timers of a step.
pub(crate) const BATCH: u64 = 128;

pub(crate) fn at_once(worker: &OneWorker, timers: u64) -> Result<(), BoxError> {
    ended(worker.submit(Churn { left: timers })?)
}

pub(crate) fn by_steps(worker: &OneWorker, timers: u64) -> Result<(), BoxError> {
    ended(worker.submit(Stepping { left: timers })?)
}

/// From 1 s to 60 s, as timeouts are.
fn later(timer: u64) -> Duration {
    Duration::from_secs(1 + timer * 7_919 % 60)
}

/// Sets a timer, and cancels it in the same step.
struct Churn {
    left: u64,
}

impl Process for Churn {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !events.is_empty() {
            return Err("each timer is cancelled".into());
        }
        for _ in 0..BATCH.min(self.left) {
            self.left -= 1;
            let timer = ctx.send_after(later(self.left), ctx.pid(), "late", ());
            timer.cancel().ok_or("it was set")?;
        }
        if self.left == 0 {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    }
}

/// Begins a sleep in each step, and cancels the sleep of the step before.
struct Stepping {
    left: u64,
}

impl Process for Stepping {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !events.is_empty() {
            return Err("each sleep is cancelled".into());
        }
        // The first step has none to cancel.
        out.cancel(self.left + 1);
        if self.left == 0 {
            out.done(());
        } else {
            out.sleep(later(self.left), self.left);
            out.step_again();
            self.left -= 1;
        }
        Ok(())
    }
}
