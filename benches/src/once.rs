//! Processes that talk to nobody.

use crate::Gate;
use ganger_proc_api::{BoxError, Events, Process, StepOutput};
use std::sync::Arc;

/// Runs once, hits the gate, and ends.
#[derive(Debug)]
pub struct Hit(pub Arc<Gate>);

impl Process for Hit {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        self.0.hit();
        out.done(());
        Ok(())
    }
}

/// Goes on for that many steps, hits the gate, and ends.
#[derive(Debug)]
pub struct Stepper {
    /// How many steps are left.
    pub left: usize,
    /// What it hits then.
    pub gate: Arc<Gate>,
}

impl Process for Stepper {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        self.left -= 1;
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        }
        Ok(())
    }
}
