//! Processes set timers and cancel them.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, process_fn};
use ganger_sched::ContextExt;
use std::time::Duration;

/// The number of timers of a step.
pub(crate) const BATCH: u64 = 128;

/// Returns a time from 1 s to 60 s, as timeouts are.
fn later(timer: u64) -> Duration {
    Duration::from_secs(1 + timer * 7_919 % 60)
}

/// Sets a timer, and cancels it in the same step.
pub(crate) fn at_once(worker: &OneWorker, timers: u64) -> Result<(), BoxError> {
    let mut left = timers;
    let churn = process_fn(move |ctx, events, out| {
        if !events.is_empty() {
            return Err("each timer is cancelled".into());
        }
        for _ in 0..BATCH.min(left) {
            left -= 1;
            let timer = ctx.send_after(later(left), ctx.pid(), "late", ());
            timer.cancel().ok_or("it was set")?;
        }
        if left == 0 {
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    });
    ended(worker.submit(churn)?)
}

/// Begins a sleep in each step, and cancels the sleep of the step before.
pub(crate) fn by_steps(worker: &OneWorker, timers: u64) -> Result<(), BoxError> {
    let mut left = timers;
    let stepping = process_fn(move |_, events, out| {
        if !events.is_empty() {
            return Err("each sleep is cancelled".into());
        }
        // The first step has none to cancel.
        out.cancel(left + 1);
        if left == 0 {
            out.done(());
        } else {
            out.sleep(later(left), left);
            out.step_again();
            left -= 1;
        }
        Ok(())
    });
    ended(worker.submit(stepping)?)
}
