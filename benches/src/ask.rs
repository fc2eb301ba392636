//! Commands in sequence, whose handler answers at once.

use crate::Gate;
use ganger_proc_api::{
    BoxError, Command, CommandId, Completer, Event, Events, Process, StepOutput,
};
use std::sync::Arc;

/// The command that [`echo`] answers.
pub const ECHO: CommandId = CommandId::new(1);

/// Answers a command with its own value.
///
/// # Errors
/// Never.
pub fn echo(command: Command, completer: Completer) -> Result<(), BoxError> {
    completer.complete(command.payloads.into_first());
    Ok(())
}

/// Yields that many [`ECHO`]s, each after the answer to the one before; hits the gate, and ends.
#[derive(Debug)]
pub struct Asker {
    /// How many commands are left.
    pub left: u64,
    /// What it hits then.
    pub gate: Arc<Gate>,
}

impl Process for Asker {
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.wait_for_yields();
        for event in events {
            if let Event::Completion(completion) = event {
                let answer = completion.result?.as_u64();
                assert_eq!(answer, Some(self.left), "an answer to another command");
                self.left -= 1;
            }
        }
        if self.left == 0 {
            self.gate.hit();
            out.done(());
        } else {
            out.yield_command(Command::new(ECHO, self.left), self.left);
        }
        Ok(())
    }
}
