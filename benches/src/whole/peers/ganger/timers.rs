//! Processes set timers, and sleep.

use super::Ganger;
use crate::whole::contestant::Timed;
use crate::whole::gate::{Gate, gate};
use crate::whole::timed::{Nap, churn_time};
use ganger_proc_api::{Context, Event, Events, Process, StepOutput, StepResult, Tag, process_fn};
use ganger_sched::{ContextExt, Instant};

/// The number of timers of a step of a continuing process.
const BATCH: u64 = 100;

const DUE: Tag = 1;

/// Measures a process that sets a timer and cancels it in the same step, or in the next, `left`
/// times.
pub(super) fn churn(ganger: &Ganger, mut left: u64, has_step: bool) -> Timed {
    let gate = gate();
    if has_step {
        return ganger.time(process_fn(move |_, events, out| {
            assert!(events.is_empty(), "each timer is cancelled");
            // The first step has no timer to cancel.
            out.cancel(left + 1);
            if left == 0 {
                gate.hit();
                out.done(());
            } else {
                out.sleep(churn_time(left), left);
                out.step_again();
                left -= 1;
            }
            Ok(())
        }));
    }
    ganger.time(process_fn(move |ctx, events, out| {
        assert!(events.is_empty(), "each timer is cancelled");
        for _ in 0..BATCH.min(left) {
            left -= 1;
            let timer = ctx.send_after(churn_time(left), ctx.pid(), "late", ());
            assert!(timer.cancel().is_some());
        }
        if left == 0 {
            gate.hit();
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    }))
}

/// Hits the gate when it starts, and when a message or a timer ends it.
pub(super) struct Waiter {
    pub(super) due: Instant,
    pub(super) gate: &'static Gate,
}

impl Process for Waiter {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        match events.next() {
            None => out.sleep_until(self.due, DUE),
            Some(Event::Completion(it)) => {
                it.result?;
                out.done(());
            }
            Some(_) => out.done(()),
        }
        self.gate.hit();
        Ok(())
    }
}

/// Sleeps for as long as it is told, again and again.
pub(super) fn sleeper(mut nap: Nap, gate: &'static Gate) -> impl Process {
    process_fn(move |_, events, out| {
        // Untaken events would be kept.
        events.for_each(drop);
        match nap.next() {
            Some(time) => out.sleep(time, DUE),
            None => {
                gate.hit();
                out.done(());
            }
        }
        Ok(())
    })
}
