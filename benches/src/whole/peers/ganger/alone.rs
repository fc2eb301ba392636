//! Processes that send no messages.

use crate::whole::gate::Gate;
use crate::whole::turns::{Race, Stuck};
use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult};

/// Runs once.
pub(super) struct Hit(pub(super) &'static Gate);

impl Process for Hit {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self.0.hit();
        out.done(());
        Ok(())
    }
}

/// Continues this many times.
pub(super) struct Stepper {
    pub(super) left: u64,
    pub(super) gate: &'static Gate,
}

impl Process for Stepper {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        } else {
            self.left -= 1;
            out.step_again();
        }
        Ok(())
    }
}

/// Blocks its worker in each step.
pub(super) struct Blocker {
    pub(super) stuck: &'static Stuck,
    pub(super) gate: &'static Gate,
}

impl Process for Blocker {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.stuck.turn() {
            out.step_again();
        } else {
            self.gate.hit();
            out.done(());
        }
        Ok(())
    }
}

/// Runs a lap a step.
pub(super) struct Racer {
    laps: u64,
    race: &'static Race,
    gate: &'static Gate,
}

impl Racer {
    pub(super) fn new(race: &'static Race, gate: &'static Gate) -> Self {
        let laps = 0;
        Self { laps, race, gate }
    }
}

impl Process for Racer {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if self.race.lap() {
            self.laps += 1;
            out.step_again();
        } else {
            self.race.finish(self.laps);
            self.gate.hit();
            out.done(());
        }
        Ok(())
    }
}
