//! A process that sees the loss of its names before any later message.
//!
//! **Protocol.** Before each step the process looks at the clock. After a loss it tells itself, if
//! the keeper has not told it, and leaves the events for the next step. There the notice, a control
//! message, is in front of the messages.

use super::keeper::Shared;
use ganger_proc_api::{BoxError, Context, Events, Payloads, Process, StepOutput, StepResult};
use std::fmt;
use std::sync::Arc;

/// A process with a look at the clock before each step: see
/// [`StrongNames::guard`](super::StrongNames::guard).
pub struct Guarded<P> {
    pub(crate) process: P,
    pub(crate) shared: Arc<Shared>,
    /// The losses of the node that the process knows of.
    pub(crate) seen: u64,
}

impl<P: Process> Process for Guarded<P> {
    fn init(&mut self, ctx: &Context, method: &str, input: Payloads) -> Result<(), BoxError> {
        self.process.init(ctx, method, input)
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        let losses = self.shared.with(|machine, now| machine.losses(now));
        if losses != self.seen {
            if self.shared.tell_lost(ctx.pid()).is_ok() {
                self.seen = losses;
            }
            out.step_again();
            return Ok(());
        }
        self.process.step(ctx, events, out)
    }

    fn close(&mut self) {
        self.process.close();
    }

    fn inspect(&self) -> Option<String> {
        self.process.inspect()
    }

    fn namer(&self) -> fn() -> &'static str {
        self.process.namer()
    }
}

impl<P> fmt::Debug for Guarded<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").finish_non_exhaustive()
    }
}
