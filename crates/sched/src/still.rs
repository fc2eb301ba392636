//! A process for tests of what is around processes.

use ganger_proc_api::{BoxError, Events, Process, StepOutput};

/// Ends in its first step.
pub(crate) struct Still;

impl Process for Still {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.done(());
        Ok(())
    }
}
