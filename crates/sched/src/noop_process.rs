//! A process for tests of the code around processes.

use ganger_proc_api::{Context, Events, Process, StepOutput, StepResult};

/// Ends in its first step.
pub(crate) struct NoopProcess;

impl Process for NoopProcess {
    fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        Ok(())
    }
}
