//! Processes that set timers, and sleep.

use crate::whole::gate::Gate;
use crate::whole::timed::{Nap, churn_time};
use ganger_proc_api::{Context, Event, Events, Process, StepOutput, StepResult, Tag};
use ganger_sched::{ContextExt, Instant};

/// The number of timers that a process sets in a step that continues.
const BATCH: u64 = 100;

const DUE: Tag = 1;

/// Sets a timer and cancels it in the same step, this many times.
pub(super) struct Churn {
    left: u64,
    gate: &'static Gate,
}

impl Churn {
    pub(super) fn new(left: u64, gate: &'static Gate) -> Self {
        Self { left, gate }
    }
}

impl Process for Churn {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        assert!(events.is_empty(), "each timer is cancelled");
        for _ in 0..BATCH.min(self.left) {
            self.left -= 1;
            let timer = ctx.send_after(churn_time(self.left), ctx.pid(), "late", ());
            assert!(timer.cancel().is_some());
        }
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        } else {
            out.step_again();
        }
        Ok(())
    }
}

/// Sets a timer in each of this many steps, and cancels it in the next step.
pub(super) struct Stepping {
    left: u64,
    gate: &'static Gate,
}

impl Stepping {
    pub(super) fn new(left: u64, gate: &'static Gate) -> Self {
        Self { left, gate }
    }
}

impl Process for Stepping {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        assert!(events.is_empty(), "each timer is cancelled");
        // The first step has no timer to cancel.
        out.cancel(self.left + 1);
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        } else {
            out.sleep(churn_time(self.left), self.left);
            out.step_again();
            self.left -= 1;
        }
        Ok(())
    }
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
pub(super) struct Sleeper {
    pub(super) nap: Nap,
    pub(super) gate: &'static Gate,
}

impl Process for Sleeper {
    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        // Untaken events would be kept.
        events.for_each(drop);
        match self.nap.next() {
            Some(time) => out.sleep(time, DUE),
            None => {
                self.gate.hit();
                out.done(());
            }
        }
        Ok(())
    }
}
