//! What several tests need.

use ganger::prelude::*;

/// Answers a message to its sender, and ends.
#[derive(Default)]
pub(crate) struct Echo(Option<Context>);

impl Process for Echo {
    fn init(&mut self, context: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        self.0 = Some(context.clone());
        Ok(())
    }

    fn step(&mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.idle();
        for event in events {
            if let (Event::Message(message), Some(context)) = (event, &self.0) {
                let source = message.source.ok_or("from nobody")?;
                context.send(source, "answer", message.payloads)?;
                out.done(());
            }
        }
        Ok(())
    }
}
