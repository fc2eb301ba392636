//! The decision of a step: the commands that it yields, and how the process goes on.

pub(super) mod runner;

use super::UpgradeRequest;
use crate::commands::{Command, Tag, Yield};
use crate::events::CancelReason;
use crate::values::Payload;
use std::iter::{Chain, FusedIterator};
use std::{fmt, mem, option, slice, vec};

/// A buffer with room for more commands than this is not kept for the next step.
const KEPT: usize = 1024;

/// How a process goes on after a step.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum Outcome {
    /// Wait for a new event. An event that the step has left does not wake the process.
    #[default]
    Wait,
    /// Step again as soon as the process's turn comes, even if no event has arrived.
    StepAgain,
    /// As `StepAgain`, behind the other ready processes.
    YieldNow,
    /// The process is finished, with this result.
    Done(Payload),
    /// Put another process in its place.
    Upgrade(Box<UpgradeRequest>),
}

/// Where a step writes its commands and its outcome. The scheduler reuses the buffer, so up to
/// 1,024 yields need no allocation once it has grown.
///
/// A step has a single outcome. A step that writes none waits for the next event
/// ([`Outcome::Wait`]). [`step_again`](Self::step_again) and [`yield_now`](Self::yield_now) ask for
/// another step, and [`wait`](Self::wait) takes the request back. [`done`](Self::done) and
/// [`upgrade`](Self::upgrade) are final: return after them. The first final outcome ends the
/// process, whatever else the step says. Another outcome after a final outcome is a mistake, and a
/// panic in debug builds, except for a second `done`.
///
/// A step that is shown a cancellation ends the process, unless it says `done` or `upgrade`, fails,
/// or [defers the cancellation](Self::defer_cancel).
///
/// ```
/// # use ganger_proc_api::{BoxError, Event, Events, StepOutput};
/// # fn step(events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
/// for event in events {
///     match event {
///         Event::Message(_) => {
///             out.done("the first message");
///             return Ok(());
///         }
///         _ => { /* … */ }
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// ```
/// use ganger_proc_api::{Command, CommandId, Outcome, StepOutput};
/// const READ: CommandId = CommandId::new(256);
///
/// let mut out = StepOutput::new();
/// out.yield_command(Command::new(READ, "/etc/hostname"), 7);
/// assert_eq!(out.yields()[0].tag, 7);
/// assert!(matches!(out.outcome(), Outcome::Wait));
/// ```
#[derive(Default)]
pub struct StepOutput {
    /// The only yield. It stays where the step has written it until it is taken.
    only: Option<Yield>,
    /// All yields of a step with several.
    several: Vec<Yield>,
    /// The tags of yields to be taken back.
    cancelled: Vec<Tag>,
    /// Whether `several` or `cancelled` may have entries; `only` is then empty.
    has_more: bool,
    kind: OutcomeKind,
    /// The outcome if it is final; `Wait` otherwise.
    end: Outcome,
    /// The reason to end the process after this step, until the step defers the cancellation.
    cancel: Option<CancelReason>,
}

/// The kind of the step's outcome. A step that goes on writes only this byte, and the scheduler
/// reads only this byte.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum OutcomeKind {
    #[default]
    Wait,
    StepAgain,
    YieldNow,
    /// `Wait` of a step that is shown a cancellation, and has not deferred it.
    CancelledWait,
    /// `StepAgain` of such a step.
    CancelledStepAgain,
    /// `YieldNow` of such a step.
    CancelledYieldNow,
    Final,
}

impl StepOutput {
    /// Creates a buffer without yields. Its outcome is [`Outcome::Wait`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for `command` to be carried out. Exactly one completion with `tag` follows, unless the
    /// process ends before.
    ///
    /// The scheduler dispatches yields in the order of their calls: after the step has returned,
    /// and before its outcome takes effect. The order holds for `Done` and `Upgrade` as well, but
    /// their completions are dropped. A step that panics has yielded nothing.
    #[inline]
    pub fn yield_command(&mut self, command: Command, tag: Tag) {
        if self.only.is_none() && !self.has_more {
            self.only = Some(Yield { command, tag });
        } else {
            self.yield_another(command, tag);
        }
    }

    /// Yields a command as [`yield_command`](Self::yield_command) does, but takes a fresh command
    /// out of its place, and leaves no value there. For crates that keep the command until their
    /// poll.
    #[doc(hidden)]
    #[inline]
    pub fn yield_out_of(&mut self, command: &mut Command, tag: Tag) {
        // A move of two words at a time waits for the stores of the command.
        if self.only.is_none() && !self.has_more {
            let command = command.take();
            self.only = Some(Yield { command, tag });
        } else {
            self.yield_another(command.take(), tag);
        }
    }

    #[inline(never)]
    fn yield_another(&mut self, command: Command, tag: Tag) {
        self.has_more = true;
        self.several.extend(self.only.take());
        self.several.push(Yield { command, tag });
    }

    /// Takes yields back: all incomplete yields of this process with this tag, including the yields
    /// of this step before the call. None of them completes: later steps are shown no completion of
    /// them, not even a completion that lies in the mailbox already.
    ///
    /// A yield of this step is not carried out. The handler of an earlier yield is told, by
    /// [`Completer::is_cancelled`](crate::Completer::is_cancelled) and
    /// [`Completer::on_end`](crate::Completer::on_end), after the step has returned and before the
    /// step's yields are carried out. The handler's answer is dropped. A step that panics takes
    /// back nothing.
    ///
    /// Does nothing if no yield has this tag. O(n) in the incomplete yields, and in the events that
    /// steps have left.
    ///
    /// ```
    /// use ganger_proc_api::{Command, CommandId, StepOutput};
    /// const SLEEP: CommandId = CommandId::new(300);
    ///
    /// let mut out = StepOutput::new();
    /// out.cancel(7);
    /// out.yield_command(Command::new(SLEEP, 50_u64), 7);
    /// assert_eq!((out.cancelled(), out.yields().len()), (&[7][..], 1));
    /// ```
    #[cold]
    pub fn cancel(&mut self, tag: Tag) {
        self.has_more = true;
        self.several.extend(self.only.take());
        self.cancelled.push(tag);
        self.several.retain(|it| it.tag != tag);
    }

    /// Steps again as soon as the process's turn comes, even if no event arrives. The scheduler
    /// warns, once, of a process that goes on 10,000 times in a row without an event or a yield.
    ///
    /// # Panics
    /// In debug builds, after [`done`](Self::done) or [`upgrade`](Self::upgrade), which are final.
    #[inline]
    pub fn step_again(&mut self) {
        self.decide(OutcomeKind::StepAgain);
    }

    /// Steps again as [`step_again`](Self::step_again) does, but behind the other ready processes:
    /// for a process with much work that is less urgent than theirs.
    ///
    /// The process goes behind the other processes of its worker, or to the end of the queue that
    /// all workers share. `step_again` costs less.
    ///
    /// # Panics
    /// In debug builds, after [`done`](Self::done) or [`upgrade`](Self::upgrade), which are final.
    #[inline]
    pub fn yield_now(&mut self) {
        self.decide(OutcomeKind::YieldNow);
    }

    /// Waits for a new event: the default. For a step that takes an earlier
    /// [`step_again`](Self::step_again) back. An event that this step leaves does not wake the
    /// process, but its next step sees the event.
    ///
    /// # Panics
    /// In debug builds, after [`done`](Self::done) or [`upgrade`](Self::upgrade), which are final.
    #[inline]
    pub fn wait(&mut self) {
        self.decide(OutcomeKind::Wait);
    }

    /// Ends the process with this result as soon as the step has returned. Final: return after it.
    /// The first of several results counts. The result may be a value of any type:
    /// [`ExitReason::take`](crate::ExitReason::take) gives it back.
    ///
    /// ```
    /// use ganger_proc_api::{ExitReason, Outcome, StepOutput};
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Found(Vec<u64>);
    ///
    /// let mut out = StepOutput::new();
    /// out.done(Found(vec![7]));
    /// # let Outcome::Done(payload) = out.take_outcome() else { panic!() };
    /// # let reason = ExitReason::Done(payload);
    /// assert_eq!(reason.take::<Found>()?, Found(vec![7]));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// Messages that no step has taken are dropped at the end of the process, and counted as
    /// undelivered; the messages taken by this step are not counted.
    ///
    /// # Panics
    /// In debug builds, after [`upgrade`](Self::upgrade).
    #[inline]
    pub fn done<T: Send + 'static>(&mut self, result: T) {
        self.decide_end(Outcome::Done(Payload::of(result)));
    }

    /// Puts another process in the place of this process as soon as the step has returned: same
    /// PID, same mailbox. Final: return after it.
    ///
    /// The new process gets the messages, cancellations and control messages that this step does
    /// not take.
    ///
    /// # Panics
    /// In debug builds, after [`done`](Self::done) or another `upgrade`.
    pub fn upgrade(&mut self, request: UpgradeRequest) {
        self.decide_end(Outcome::Upgrade(Box::new(request)));
    }

    /// Defers a cancellation that this step is shown: the process takes note, and finishes later by
    /// itself. Without a cancellation, does nothing.
    ///
    /// The first step that is shown a cancellation must defer it, whether the step takes the event
    /// or leaves it.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     Command, CommandId, Context, Event, Events, Process, StepOutput, StepResult,
    /// };
    /// const SAVE: CommandId = CommandId::new(1);
    ///
    /// /// Has its state saved before it ends.
    /// struct Careful;
    ///
    /// impl Process for Careful {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         events: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         for event in events {
    ///             match event {
    ///                 Event::Cancel(_) => {
    ///                     out.defer_cancel();
    ///                     out.yield_command(Command::new(SAVE, ()), 1);
    ///                 }
    ///                 Event::Completion(saved) => {
    ///                     saved.result?;
    ///                     out.done(());
    ///                     return Ok(());
    ///                 }
    ///                 _ => {}
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    pub fn defer_cancel(&mut self) {
        self.kind = match self.kind {
            OutcomeKind::CancelledWait => OutcomeKind::Wait,
            OutcomeKind::CancelledStepAgain => OutcomeKind::StepAgain,
            OutcomeKind::CancelledYieldNow => OutcomeKind::YieldNow,
            other => other,
        };
    }

    #[inline]
    fn decide(&mut self, kind: OutcomeKind) {
        if matches!(
            self.kind,
            OutcomeKind::Wait | OutcomeKind::StepAgain | OutcomeKind::YieldNow
        ) {
            self.kind = kind;
        } else {
            self.decide_otherwise(kind);
        }
    }

    #[cold]
    #[inline(never)]
    fn decide_otherwise(&mut self, kind: OutcomeKind) {
        self.kind = match (self.kind, kind) {
            (OutcomeKind::Final, _) => return Self::decided_again(),
            (_, OutcomeKind::StepAgain) => OutcomeKind::CancelledStepAgain,
            (_, OutcomeKind::YieldNow) => OutcomeKind::CancelledYieldNow,
            _ => OutcomeKind::CancelledWait,
        };
    }

    #[inline]
    fn decide_end(&mut self, end: Outcome) {
        if self.kind == OutcomeKind::Final {
            self.ended_again(end);
        } else {
            self.kind = OutcomeKind::Final;
            self.end = end;
        }
    }

    #[cold]
    #[inline(never)]
    fn ended_again(&mut self, end: Outcome) {
        if !matches!((&self.end, end), (Outcome::Done(_), Outcome::Done(_))) {
            Self::decided_again();
        }
    }

    fn decided_again() {
        debug_assert!(
            false,
            "the step has written another outcome after `done` or `upgrade`, which are final: \
             return from the step after `done` and `upgrade`"
        );
    }

    /// Returns the commands written so far.
    #[must_use]
    #[inline]
    pub fn yields(&self) -> &[Yield] {
        match &self.only {
            Some(only) => slice::from_ref(only),
            None => &self.several,
        }
    }

    /// Returns the tags of yields to be taken back, in the order of the calls.
    #[must_use]
    pub fn cancelled(&self) -> &[Tag] {
        &self.cancelled
    }

    /// Returns the outcome.
    #[must_use]
    #[inline]
    pub fn outcome(&self) -> &Outcome {
        const WAIT: &Outcome = &Outcome::Wait;
        const STEP_AGAIN: &Outcome = &Outcome::StepAgain;
        const YIELD_NOW: &Outcome = &Outcome::YieldNow;
        match self.kind {
            OutcomeKind::Wait | OutcomeKind::CancelledWait => WAIT,
            OutcomeKind::StepAgain | OutcomeKind::CancelledStepAgain => STEP_AGAIN,
            OutcomeKind::YieldNow | OutcomeKind::CancelledYieldNow => YIELD_NOW,
            OutcomeKind::Final => &self.end,
        }
    }

    /// Takes the commands out, in order; for schedulers.
    ///
    /// The buffer stays for the next step. A buffer grown for more than 1,024 commands goes with
    /// the iterator.
    #[inline]
    pub fn drain_yields(&mut self) -> DrainYields<'_> {
        self.has_more = !self.cancelled.is_empty();
        let burst = if self.several.capacity() > KEPT {
            mem::take(&mut self.several)
        } else {
            Vec::new()
        };
        let only = self.only.take().into_iter();
        DrainYields(only.chain(burst).chain(self.several.drain(..)))
    }

    /// Takes the outcome out, leaving [`Outcome::Wait`]; for schedulers.
    #[must_use]
    #[inline]
    pub fn take_outcome(&mut self) -> Outcome {
        match mem::take(&mut self.kind) {
            OutcomeKind::Wait | OutcomeKind::CancelledWait => Outcome::Wait,
            OutcomeKind::StepAgain | OutcomeKind::CancelledStepAgain => Outcome::StepAgain,
            OutcomeKind::YieldNow | OutcomeKind::CancelledYieldNow => Outcome::YieldNow,
            OutcomeKind::Final => mem::take(&mut self.end),
        }
    }

    /// Drops commands and outcome, and keeps the buffer; for schedulers.
    pub fn clear(&mut self) {
        self.cancelled.clear();
        drop(self.drain_yields());
        self.cancel = None;
        drop(self.take_outcome());
    }
}

impl fmt::Debug for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepOutput")
            .field("yields", &self.yields())
            .field("cancelled", &self.cancelled)
            .field("outcome", self.outcome())
            .finish()
    }
}

/// The commands of a step, in order: see [`StepOutput::drain_yields`]. Dropping it drops the
/// remaining commands.
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

    /// Returns the room of the buffer after each of several steps with these numbers of commands.
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
