//! The calls of a process's runner to the output of a step.

use super::{OutcomeKind, StepOutput};
use crate::commands::{Tag, Yield};
use crate::events::CancelReason;
use std::vec;

/// The part of a step's output for schedulers, and for crates that run steps inside of another
/// step.
pub trait RunnerOutput {
    /// Shows the step a cancellation for this reason. Called before the step.
    fn show_cancel(&mut self, reason: CancelReason);

    /// Takes the reason of the cancellation that the step was shown and has not deferred. Called
    /// after the step.
    #[must_use]
    fn take_cancel(&mut self) -> Option<CancelReason>;

    /// Returns whether the outcome is [`Outcome::Wait`](crate::Outcome::Wait).
    #[must_use]
    fn waits(&self) -> bool;

    /// Returns whether the outcome is [`Outcome::StepAgain`](crate::Outcome::StepAgain). If so,
    /// leaves [`Outcome::Wait`](crate::Outcome::Wait).
    #[must_use]
    fn take_step_again(&mut self) -> bool;

    /// Returns whether the outcome is [`Outcome::YieldNow`](crate::Outcome::YieldNow). If so,
    /// leaves [`Outcome::Wait`](crate::Outcome::Wait).
    #[must_use]
    fn take_yield_now(&mut self) -> bool;

    /// Returns whether the step has decided that the process ends or is replaced.
    #[must_use]
    fn is_final(&self) -> bool;

    /// Returns whether the step may have several yields, or tags to take back.
    #[must_use]
    fn has_more(&self) -> bool;

    /// Takes out the tags of yields to be taken back. Called before
    /// [`drain_yields`](StepOutput::drain_yields).
    #[must_use]
    fn drain_cancelled(&mut self) -> vec::Drain<'_, Tag>;

    /// Returns the place of the only yield, to take it from.
    #[must_use]
    fn only_yield(&mut self) -> &mut Option<Yield>;
}

impl RunnerOutput for StepOutput {
    fn show_cancel(&mut self, reason: CancelReason) {
        self.kind = OutcomeKind::CancelledWait;
        self.cancel = Some(reason);
    }

    fn take_cancel(&mut self) -> Option<CancelReason> {
        let is_cancelled = matches!(
            self.kind,
            OutcomeKind::CancelledWait
                | OutcomeKind::CancelledStepAgain
                | OutcomeKind::CancelledYieldNow
        );
        self.cancel.take().filter(|_| is_cancelled)
    }

    #[inline]
    fn waits(&self) -> bool {
        self.kind == OutcomeKind::Wait
    }

    #[inline]
    fn take_step_again(&mut self) -> bool {
        let goes_on = self.kind == OutcomeKind::StepAgain;
        if goes_on {
            self.kind = OutcomeKind::Wait;
        }
        goes_on
    }

    #[inline]
    fn take_yield_now(&mut self) -> bool {
        let goes_on = self.kind == OutcomeKind::YieldNow;
        if goes_on {
            self.kind = OutcomeKind::Wait;
        }
        goes_on
    }

    #[inline]
    fn is_final(&self) -> bool {
        self.kind == OutcomeKind::Final
    }

    #[inline]
    fn has_more(&self) -> bool {
        self.has_more
    }

    #[inline]
    fn drain_cancelled(&mut self) -> vec::Drain<'_, Tag> {
        self.cancelled.drain(..)
    }

    #[inline]
    fn only_yield(&mut self) -> &mut Option<Yield> {
        &mut self.only
    }
}
