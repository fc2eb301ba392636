//! Yields with a later completion.

use super::StepOutput;
use crate::commands::{Asked, Command, CommandId, Tag, TypedCommand};
use crate::values::{Instant, Payload};
use std::time::Duration;

/// Timers of a process.
///
/// The completion carries the tag and `Payload::UNIT`. `out.cancel(tag)` takes a timer back: no
/// later step is shown its completion, not even a completion that lies in the mailbox already. A
/// timer ends with its process.
impl StepOutput {
    /// Yields a timer that completes `time` after the end of the step, and never before. Zero
    /// completes at once. A time too long for the clock is never over.
    ///
    /// ```
    /// use ganger_proc_api::{CommandId, StepOutput};
    /// use std::time::Duration;
    ///
    /// let mut out = StepOutput::new();
    /// out.sleep(Duration::from_millis(5), 1);
    /// assert_eq!((out.yields()[0].command.id, out.yields()[0].tag), (CommandId::SLEEP, 1));
    /// ```
    #[inline]
    pub fn sleep(&mut self, time: Duration, tag: Tag) {
        self.yield_command(Command::new(CommandId::SLEEP, nanos(time)), tag);
    }

    /// Yields a timer that completes at this moment, and never before. A past moment completes at
    /// once.
    #[inline]
    pub fn sleep_until(&mut self, at: Instant, tag: Tag) {
        self.yield_command(Command::new(CommandId::TIMER, at.as_nanos()), tag);
    }

    /// Asks as [`ask`](Self::ask) does, but waits for the answer at most `time`: then the
    /// completion is [`CommandError::Timeout`](crate::CommandError::Timeout), and the asked process
    /// or handler sees that the answer is unwanted. When the answer comes before, nothing remains
    /// of the timer.
    pub fn ask_within<C: TypedCommand>(
        &mut self,
        command: C,
        time: Duration,
        tag: Tag,
    ) -> Asked<C> {
        let command = Payload::any(command.into_command());
        let payloads = [nanos(time).into(), command];
        self.yield_command(Command::new(CommandId::ASK_WITHIN, payloads), tag);
        Asked::new(tag)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
