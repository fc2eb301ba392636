//! Yields of typed commands.

use super::StepOutput;
use crate::commands::{Asked, Tag, TypedCommand};

impl StepOutput {
    /// Asks for a [typed command](TypedCommand) to be carried out, as
    /// [`yield_command`](Self::yield_command) does. The result names the answer's type to the code
    /// that takes the completion; a process that knows the type otherwise drops the result.
    #[inline]
    pub fn ask<C: TypedCommand>(&mut self, command: C, tag: Tag) -> Asked<C> {
        self.yield_command(command.into_command(), tag);
        Asked::new(tag)
    }
}
