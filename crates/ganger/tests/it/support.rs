//! Helpers of several tests.

use ganger::prelude::*;

/// Answers a message to its sender, and ends.
pub(crate) struct Echo;

impl Process for Echo {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(message) = event {
                let source = message.source.ok_or("from nobody")?;
                ctx.send(source, "answer", message.payloads)?;
                out.done(());
            }
        }
        Ok(())
    }
}
