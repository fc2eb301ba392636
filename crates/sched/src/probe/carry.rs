//! What a step that is traced hands on to the steps that it causes.
//!
//! **Problem.** A trace of a request goes from process to process: with messages, answers, new
//! processes, wake-ups and timers. A word for it in each message would make all of them larger, and
//! slower to move.
//!
//! **Protocol.**
//! 1. A traced step has a [cause](Carry::Cause) on its thread for as long as it lasts, with the
//!    dispatch of its commands, and with the end of its process if that is its last step.
//! 2. What that thread puts into a mailbox meanwhile comes behind an item that is the cause.
//! 3. The worker takes the cause out between two steps. The next step has it.
//! 4. A system event overtakes what waits, and so it is one item with its cause.
//! 5. No cause counts as an event that waits: its sender knows how many there are, and the worker
//!    counts those that leave a mailbox.
//! 6. A yield keeps the cause in its process, by the yield's number. The step that is shown the
//!    completion has it.
//!
//! So nothing grows where there is no cause. Where no probe carries one, the cause is of a type
//! without values, and all of this is compiled to nothing.

use super::Probe;
use ganger_proc_api::{ExitReason, Pid, Symbol};
use std::any::Any;
use std::convert::Infallible;
use std::sync::Arc;

/// What is known of a step that is about to begin.
#[cfg_attr(
    not(feature = "observe"),
    expect(dead_code, reason = "a tracer alone looks inside")
)]
pub(crate) struct StepFacts {
    pub(crate) pid: Pid,
    pub(crate) method: Symbol,
    pub(crate) type_name: &'static str,
    /// How many events the step sees.
    pub(crate) events: usize,
    pub(crate) worker: Option<usize>,
}

pub(crate) trait Carry: Probe {
    /// What has caused something.
    type Cause: Clone + PartialEq + Send + 'static;
    /// A traced step, until it is dropped.
    type Step: Default;
    /// A turn, until it is dropped. The last step of a process that ends in it lasts as long.
    type Turn: Default;

    /// Whether steps may be traced.
    #[inline(always)]
    fn traces(&self) -> bool {
        false
    }

    /// What has caused that which this thread does now.
    #[inline(always)]
    fn cause(&self) -> Option<Self::Cause> {
        None
    }

    /// What the process has been asked to keep for its outstanding yields is that of its own steps
    /// alone: the cause of this thread, if it is a step.
    #[inline(always)]
    fn own_cause(&self) -> Option<Self::Cause> {
        None
    }

    /// As that, for work of any scheduler.
    #[inline(always)]
    fn here() -> Option<Self::Cause> {
        None
    }

    /// A turn begins.
    #[inline(always)]
    fn turn(&self) -> Self::Turn {
        Self::Turn::default()
    }

    /// A step begins that has these causes.
    #[inline(always)]
    fn begin(
        &self,
        _process: &Self::Process,
        _facts: StepFacts,
        _causes: Vec<Self::Cause>,
    ) -> Self::Step {
        Self::Step::default()
    }

    /// The step has failed.
    #[inline(always)]
    fn fail(_step: &Self::Step, _reason: &ExitReason) {}

    /// The step was the last one of its process.
    #[inline(always)]
    fn is_last(_step: Self::Step) {}

    /// Calls `f` as if it had no cause.
    #[inline(always)]
    #[cfg(feature = "sim")]
    fn uncaused<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    /// A cause, for a crate that keeps it.
    #[inline(always)]
    fn outwards(_cause: Self::Cause) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Calls `f`, which has the cause that such a crate has kept.
    #[inline(always)]
    fn within<R>(_cause: Arc<dyn Any + Send + Sync>, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Nothing is traced.
impl Carry for () {
    type Cause = Infallible;
    type Step = Untraced;
    type Turn = Untraced;
}

/// A step, or a turn, of which nothing is known.
#[derive(Default)]
pub(crate) struct Untraced;
