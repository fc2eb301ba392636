//! What a step decides: the commands that it yields, and how the process goes on.

use crate::{Command, Payload, Tag, UpgradeRequest};
use smallvec::SmallVec;

/// A command with the tag that its completion will carry.
#[derive(Debug)]
pub struct Yield {
    /// The command.
    pub command: Command,
    /// The tag.
    pub tag: Tag,
}

/// How a process goes on after a step.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// Step again as soon as its turn comes.
    #[default]
    Continue,
    /// Wait for any event.
    Idle,
    /// Wait for any event; says to the reader that completions are what it waits for.
    WaitForYields,
    /// The process is finished, with this result.
    Done(Payload),
    /// Put another process in its place.
    Upgrade(Box<UpgradeRequest>),
}

/// Where a step writes its commands and its outcome. The scheduler reuses the buffer: up to two
/// yields a step need no allocation, and more need none once the buffer has grown.
///
/// ```
/// use ganger_proc_api::{Command, CommandId, Outcome, StepOutput};
/// const READ: CommandId = CommandId::new(1);
///
/// let mut out = StepOutput::new();
/// out.yield_command(Command::new(READ, "/etc/hostname"), 7);
/// out.wait_for_yields();
/// assert_eq!(out.yields()[0].tag, 7);
/// assert!(matches!(out.outcome(), Outcome::WaitForYields));
/// ```
#[derive(Debug, Default)]
pub struct StepOutput {
    yields: SmallVec<[Yield; 2]>,
    outcome: Outcome,
}

impl StepOutput {
    /// Nothing yielded; the outcome is [`Outcome::Continue`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for `command` to be carried out. Exactly one completion with `tag` will follow, unless
    /// the process ends before.
    ///
    /// Yields are dispatched in the order in which they were written, after the step has returned
    /// and before its outcome takes effect, also when the outcome is `Done` or `Upgrade` (their
    /// completions then go nowhere). A step that panics has yielded nothing.
    #[inline]
    pub fn yield_command(&mut self, command: Command, tag: Tag) {
        self.yields.push(Yield { command, tag });
    }

    /// Step again as soon as the process's turn comes: the default.
    #[inline]
    pub fn go_on(&mut self) {
        self.outcome = Outcome::Continue;
    }

    /// Wait for any event.
    pub fn idle(&mut self) {
        self.outcome = Outcome::Idle;
    }

    /// Wait for any event; completions are what the process expects.
    #[inline]
    pub fn wait_for_yields(&mut self) {
        self.outcome = Outcome::WaitForYields;
    }

    /// The process is finished, with this result.
    #[inline]
    pub fn done(&mut self, result: impl Into<Payload>) {
        self.outcome = Outcome::Done(result.into());
    }

    /// Put another process in the place of this one: same PID, same mailbox.
    pub fn upgrade(&mut self, request: UpgradeRequest) {
        self.outcome = Outcome::Upgrade(Box::new(request));
    }

    /// The commands written so far.
    #[must_use]
    #[inline]
    pub fn yields(&self) -> &[Yield] {
        &self.yields
    }

    /// The outcome written last.
    #[must_use]
    #[inline]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Takes the commands out, in order; for schedulers.
    #[inline]
    pub fn drain_yields(&mut self) -> impl ExactSizeIterator<Item = Yield> + '_ {
        self.yields.drain(..)
    }

    /// Takes the outcome out, leaving [`Outcome::Continue`]; for schedulers.
    #[must_use]
    #[inline]
    pub fn take_outcome(&mut self) -> Outcome {
        std::mem::take(&mut self.outcome)
    }

    /// Forgets commands and outcome, and keeps the buffer; for schedulers.
    pub fn clear(&mut self) {
        self.yields.clear();
        self.outcome = Outcome::Continue;
    }
}
