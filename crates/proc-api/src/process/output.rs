//! What a step decides: the commands that it yields, and how the process goes on.

use super::UpgradeRequest;
use crate::commands::{Command, Tag};
use crate::values::Payload;
use std::iter::{Chain, FusedIterator};
use std::{fmt, mem, option, slice, vec};

/// A buffer with room for more commands than this is not kept for the next step.
const KEPT: usize = 1024;

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
    /// Step again as soon as the process's turn comes, even if no event has arrived.
    #[default]
    Continue,
    /// Wait for a new event. An event that the step has left does not wake the process.
    Idle,
    /// The same as `Idle`, and tells the reader of the code that the process expects completions.
    WaitForYields,
    /// The process is finished, with this result.
    Done(Payload),
    /// Put another process in its place.
    Upgrade(Box<UpgradeRequest>),
}

/// Where a step writes its commands and its outcome. The scheduler reuses the buffer, so up to
/// 1,024 yields need no allocation once it has grown.
///
/// There is one outcome. Of [`go_on`](Self::go_on), [`idle`](Self::idle),
/// [`wait_for_yields`](Self::wait_for_yields), [`done`](Self::done) and [`upgrade`](Self::upgrade),
/// **the last call wins**: a `done` for one event is lost when a later event of the same step calls
/// `idle`. So a step that takes its events in a loop first says how it goes on, and returns when it
/// decides otherwise:
///
/// ```
/// # use ganger_proc_api::{BoxError, Event, Events, StepOutput};
/// # fn step(events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
/// out.idle();
/// for event in events {
///     match event {
///         Event::Cancel(_) => {
///             out.done("cancelled");
///             return Ok(());
///         }
///         _ => { /* … */ }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// A step that writes no outcome is called again at once ([`Outcome::Continue`]).
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
#[derive(Default)]
pub struct StepOutput {
    /// The only yield. It stays where the step has written it until it is taken.
    only: Option<Yield>,
    /// All yields, where there are several.
    several: Vec<Yield>,
    kind: OutcomeKind,
    /// The outcome if it has a value; `Continue` otherwise.
    with_value: Outcome,
}

/// Which outcome the step has written. A step that waits writes this byte alone, and the scheduler
/// reads this byte alone.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OutcomeKind {
    #[default]
    Continue,
    Idle,
    WaitForYields,
    WithValue,
}

impl StepOutput {
    /// A buffer without yields. Its outcome is [`Outcome::Continue`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for `command` to be carried out. Exactly one completion with `tag` follows, unless the
    /// process ends before.
    ///
    /// Yields are dispatched in the order in which they were written: after the step has returned,
    /// and before its outcome takes effect. That holds for `Done` and `Upgrade` as well. Their
    /// completions are then dropped. A step that panics has yielded nothing.
    #[inline]
    pub fn yield_command(&mut self, command: Command, tag: Tag) {
        if self.yields().is_empty() {
            self.only = Some(Yield { command, tag });
        } else {
            self.yield_another(command, tag);
        }
    }

    #[inline(never)]
    fn yield_another(&mut self, command: Command, tag: Tag) {
        self.several.extend(self.only.take());
        self.several.push(Yield { command, tag });
    }

    /// Step again as soon as the process's turn comes, even if no event arrives: the default. Of
    /// several outcomes the last one counts.
    #[inline]
    pub fn go_on(&mut self) {
        self.decide(OutcomeKind::Continue);
    }

    /// Wait for a new event. An event that this step leaves does not wake the process, but its next
    /// step sees it. Of several outcomes the last one counts: this one replaces an earlier
    /// [`done`](Self::done).
    #[inline]
    pub fn idle(&mut self) {
        self.decide(OutcomeKind::Idle);
    }

    /// The same as [`idle`](Self::idle), for a process that expects completions. Of several
    /// outcomes the last one counts: this one replaces an earlier [`done`](Self::done).
    #[inline]
    pub fn wait_for_yields(&mut self) {
        self.decide(OutcomeKind::WaitForYields);
    }

    /// The process ends with this result as soon as the step has returned. Of several outcomes the
    /// last one counts.
    ///
    /// Return after it. Messages that no step has taken when a process ends are dropped, and
    /// counted as undelivered; those that this step has taken are not counted.
    #[inline]
    pub fn done(&mut self, result: impl Into<Payload>) {
        self.decide_with_value(Outcome::Done(result.into()));
    }

    /// Put another process in the place of this one as soon as the step has returned: same PID,
    /// same mailbox. Of several outcomes the last one counts.
    ///
    /// Return after it. The new process gets the messages, cancellations and control messages that
    /// this step does not take.
    pub fn upgrade(&mut self, request: UpgradeRequest) {
        self.decide_with_value(Outcome::Upgrade(Box::new(request)));
    }

    #[inline]
    fn decide(&mut self, kind: OutcomeKind) {
        // The kind is written before the old value is dropped, because a destructor may panic.
        if mem::replace(&mut self.kind, kind) == OutcomeKind::WithValue {
            self.drop_value();
        }
    }

    #[inline]
    fn decide_with_value(&mut self, outcome: Outcome) {
        // The order is as in `decide`: the assignment drops an old value.
        self.kind = OutcomeKind::WithValue;
        self.with_value = outcome;
    }

    /// Drops the value of an outcome that has been replaced.
    #[cold]
    #[inline(never)]
    fn drop_value(&mut self) {
        self.with_value = Outcome::Continue;
    }

    /// The commands written so far.
    #[must_use]
    #[inline]
    pub fn yields(&self) -> &[Yield] {
        match &self.only {
            Some(only) => slice::from_ref(only),
            None => &self.several,
        }
    }

    /// The outcome written last.
    #[must_use]
    #[inline]
    pub fn outcome(&self) -> &Outcome {
        const CONTINUE: &Outcome = &Outcome::Continue;
        const IDLE: &Outcome = &Outcome::Idle;
        const WAIT_FOR_YIELDS: &Outcome = &Outcome::WaitForYields;
        match self.kind {
            OutcomeKind::Continue => CONTINUE,
            OutcomeKind::Idle => IDLE,
            OutcomeKind::WaitForYields => WAIT_FOR_YIELDS,
            OutcomeKind::WithValue => &self.with_value,
        }
    }

    /// Whether the process waits. If so, leaves [`Outcome::Continue`]. For schedulers.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn take_wait(&mut self) -> bool {
        let waits = matches!(self.kind, OutcomeKind::Idle | OutcomeKind::WaitForYields);
        if waits {
            self.kind = OutcomeKind::Continue;
        }
        waits
    }

    /// Whether the outcome is [`Outcome::Continue`]; for schedulers.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.kind == OutcomeKind::Continue
    }

    /// Takes the commands out, in order; for schedulers.
    ///
    /// The buffer stays for the next step. One that has grown for more than 1,024 commands does
    /// not: it goes with the iterator.
    #[inline]
    pub fn drain_yields(&mut self) -> DrainYields<'_> {
        let burst = if self.several.capacity() > KEPT {
            mem::take(&mut self.several)
        } else {
            Vec::new()
        };
        let only = self.only.take().into_iter();
        DrainYields(only.chain(burst).chain(self.several.drain(..)))
    }

    /// The place of the only yield, to take it from; for schedulers.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn only_yield(&mut self) -> &mut Option<Yield> {
        &mut self.only
    }

    /// Takes the outcome out, leaving [`Outcome::Continue`]; for schedulers.
    #[must_use]
    #[inline]
    pub fn take_outcome(&mut self) -> Outcome {
        match mem::take(&mut self.kind) {
            OutcomeKind::Continue => Outcome::Continue,
            OutcomeKind::Idle => Outcome::Idle,
            OutcomeKind::WaitForYields => Outcome::WaitForYields,
            OutcomeKind::WithValue => mem::take(&mut self.with_value),
        }
    }

    /// Drops commands and outcome, and keeps the buffer; for schedulers.
    pub fn clear(&mut self) {
        drop(self.drain_yields());
        self.go_on();
    }
}

impl fmt::Debug for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepOutput")
            .field("yields", &self.yields())
            .field("outcome", self.outcome())
            .finish()
    }
}

/// The commands of a step, in order: see [`StepOutput::drain_yields`]. Those that are not taken are
/// dropped with it.
#[derive(Debug)]
pub struct DrainYields<'a>(
    Chain<Chain<option::IntoIter<Yield>, vec::IntoIter<Yield>>, vec::Drain<'a, Yield>>,
);

impl Iterator for DrainYields<'_> {
    type Item = Yield;

    #[inline]
    fn next(&mut self) -> Option<Yield> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for DrainYields<'_> {}
impl FusedIterator for DrainYields<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandId;

    /// The room of the buffer after steps with so many commands.
    fn room_after<const N: usize>(steps: [usize; N]) -> [usize; N] {
        let mut out = StepOutput::new();
        steps.map(|commands| {
            for tag in 0..commands as u64 {
                out.yield_command(Command::new(CommandId::new(1), ()), tag);
            }
            assert_eq!(out.drain_yields().len(), commands);
            assert!(out.yields().is_empty());
            out.several.capacity()
        })
    }

    #[test]
    fn steps_with_many_and_few_commands_in_turn_allocate_once() {
        let [first, rest @ ..] = room_after([1_000, 10, 1_000, 1, 500, 1_000]);
        assert!(first >= 1_000);
        assert_eq!(rest, [first; 5]);
    }

    #[test]
    fn a_burst_leaves_no_buffer() {
        assert_eq!(room_after([10, 10_000])[1], 0);
    }
}
