//! The cause of further steps, handed on by a traced step.
//!
//! **Problem.** A trace of a request goes from process to process: with messages, answers, new
//! processes, wake-ups and timers. A word for it in each message would make all of them larger, and
//! slower to move.
//!
//! **Protocol.**
//! 1. A traced step has a [cause](Carry::Cause) on its thread for as long as it lasts, with the
//!    dispatch of its commands, and with the end of its process after its last step.
//! 2. Items that this thread puts into a mailbox meanwhile come behind an item with the cause.
//! 3. The worker takes the cause out between two steps. The next step has it.
//! 4. A system event overtakes waiting items, and so it shares an item with its cause.
//! 5. No cause counts as a waiting event: its sender knows the number of causes, and the worker
//!    counts the causes that leave a mailbox.
//! 6. A yield keeps the cause in its process, by the yield's number. The step with the completion
//!    has it.
//!
//! So nothing grows without a cause. Where no probe carries causes, the cause is of a type without
//! values, and all of this is compiled to nothing.

use super::Probe;
use ganger_proc_api::{ExitReason, Pid, Symbol};
use std::any::Any;
use std::convert::Infallible;
use std::sync::Arc;

/// The facts on a step about to begin.
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
    /// The cause of an event.
    type Cause: Clone + PartialEq + Send + 'static;
    /// A traced step, until it is dropped.
    type Step: Default;
    /// A turn, until it is dropped. The last step of a process that ends in it lasts as long.
    type Turn: Default;

    /// Returns whether steps may be traced.
    #[inline(always)]
    fn traces(&self) -> bool {
        false
    }

    /// Returns the cause of this thread's present work.
    #[inline(always)]
    fn cause(&self) -> Option<Self::Cause> {
        None
    }

    /// Returns the cause of this thread, if it is a step of the process: for data kept for the
    /// process's own outstanding yields.
    #[inline(always)]
    fn own_cause(&self) -> Option<Self::Cause> {
        None
    }

    /// Returns the cause as [`own_cause`](Self::own_cause) does, for work of any scheduler.
    #[inline(always)]
    fn here() -> Option<Self::Cause> {
        None
    }

    /// Begins a turn.
    #[inline(always)]
    fn turn(&self) -> Self::Turn {
        Self::Turn::default()
    }

    /// Begins a step with these causes.
    #[inline(always)]
    fn begin(
        &self,
        _process: &Self::Process,
        _facts: StepFacts,
        _causes: Vec<Self::Cause>,
    ) -> Self::Step {
        Self::Step::default()
    }

    /// Reports a failed step.
    #[inline(always)]
    fn fail(_step: &Self::Step, _reason: &ExitReason) {}

    /// Notes the step as the last of its process.
    #[inline(always)]
    fn is_last(_step: Self::Step) {}

    /// Calls `f` as if it had no cause.
    #[inline(always)]
    #[cfg(feature = "sim")]
    fn uncaused<R>(f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Turns a cause into a value for a crate that keeps it.
    #[inline(always)]
    fn outwards(_cause: Self::Cause) -> Option<Arc<dyn Any + Send + Sync>> {
        None
    }

    /// Calls `f` with a cause kept by such a crate.
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

/// A step, or a turn, without a trace.
#[derive(Default)]
pub(crate) struct Untraced;
