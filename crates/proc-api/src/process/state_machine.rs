//! The state machine that users write.

use super::{Context, StepOutput};
use crate::events::Events;
use crate::values::{BoxError, Payloads};
use std::any::{self, Any, TypeId};

/// The result of a step: an error ends its process.
pub type StepResult = Result<(), BoxError>;

/// A process: a state machine that a scheduler moves on when an event has happened.
///
/// The calls of a process never overlap. Each call sees all effects of the calls before it, even if
/// they ran on other threads. A panic in a call ends the process and nothing else.
///
/// ```
/// use ganger_proc_api::{BoxError, Context, Event, Events, Process, StepOutput, StepResult};
///
/// /// Adds up what it is sent, until it is cancelled.
/// #[derive(Default)]
/// struct Sum(u64);
///
/// impl Process for Sum {
///     fn step(
///         &mut self,
///         _: &Context,
///         events: &mut Events<'_>,
///         out: &mut StepOutput,
///     ) -> StepResult {
///         for event in events {
///             match event {
///                 Event::Message(message) => {
///                     self.0 += message.payloads.into_first().as_u64().ok_or("not a number")?;
///                 }
///                 Event::Cancel(_) => {
///                     out.done(self.0);
///                     return Ok(());
///                 }
///                 _ => {}
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
/// A closure with the arguments of a step is a process as well: see [`process_fn`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a process",
    label = "this is not a process",
    note = "implement `Process` for a type that is `Send + 'static`: its `step` takes \
            `&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput` and returns \
            a `StepResult`",
    note = "a closure with the arguments of a step is a process: write \
            `process_fn(|ctx, events, out| {{ … Ok(()) }})`",
    note = "an actor or an async function is not a process: start it with `spawn`"
)]
pub trait Process: Any + Send {
    /// Prepares the process. Runs once, on the thread that submits it, before the first step.
    ///
    /// `method` names the entry point. The default accepts every method and ignores the input.
    ///
    /// The process has its PID already: it may send requests, and give its PID to other processes.
    /// News for it waits in its mailbox for the first step. When `init` fails, these messages are
    /// dropped, and count as undelivered.
    ///
    /// `init` may start other processes, whose `init` then runs inside of it, on the same stack.
    /// Inside of 64 starts, or of a mebibyte of stack, a further start is refused with
    /// [`TooDeep`](crate::SubmitErrorKind::TooDeep). A step starts a chain of any length.
    ///
    /// # Errors
    /// An error keeps the process from starting, and goes to the submitter. Return
    /// [`UnknownMethod`] for a method that the process does not have.
    fn init(&mut self, ctx: &Context, method: &str, input: Payloads) -> Result<(), BoxError> {
        let _ = (ctx, method, input);
        Ok(())
    }

    /// Takes events, and writes commands and an outcome. The first step may see no events.
    ///
    /// **A step that writes no outcome waits** for the next event. A step with more work calls
    /// [`out.step_again()`](StepOutput::step_again). Return after [`done`](StepOutput::done) and
    /// [`upgrade`](StepOutput::upgrade), which are final.
    ///
    /// A step should not block its thread and should return soon: other processes wait for the
    /// worker.
    ///
    /// # Errors
    /// An error ends the process with [`ExitReason::Failed`](crate::ExitReason::Failed). Commands
    /// that the step yielded before are dispatched.
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult;

    /// Releases the resources of the process. Runs exactly once if `init` has returned `Ok`,
    /// however the process ends, and never while `step` runs.
    fn close(&mut self) {}

    /// Returns the state of the process, as an operator sees it. `None`, the default, shows
    /// nothing.
    ///
    /// A scheduler calls the hook between two steps, where it allows operators to look. A panic in
    /// the hook is contained, and the process goes on.
    fn inspect(&self) -> Option<String> {
        None
    }

    /// Returns a function that returns the name of the process's type. For schedulers.
    #[doc(hidden)]
    fn namer(&self) -> fn() -> &'static str {
        any::type_name::<Self>
    }
}

/// A closure is a process without `init` and `close`.
impl<F> Process for F
where
    F: FnMut(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult + Send + 'static,
{
    #[inline]
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        self(ctx, events, out)
    }
}

/// Returns the closure, a process that calls it for each step. Here the compiler learns the types
/// of its arguments.
///
/// ```
/// use ganger_proc_api::{Event, Process, process_fn};
///
/// fn is_process(_: impl Process) {}
///
/// let mut sum = 0;
/// is_process(process_fn(move |_, events, out| {
///     for event in events {
///         if let Event::Message(message) = event {
///             sum += message.payloads.into_first().as_u64().ok_or("not a number")?;
///         }
///     }
///     if sum >= 100 {
///         out.done(sum);
///     }
///     Ok(())
/// }));
/// ```
#[must_use]
pub fn process_fn<F>(step: F) -> F
where
    F: FnMut(&Context, &mut Events<'_>, &mut StepOutput) -> StepResult + Send + 'static,
{
    step
}

impl Process for Box<dyn Process> {
    fn init(&mut self, ctx: &Context, method: &str, input: Payloads) -> Result<(), BoxError> {
        (**self).init(ctx, method, input)
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        (**self).step(ctx, events, out)
    }

    fn close(&mut self) {
        (**self).close();
    }

    fn inspect(&self) -> Option<String> {
        (**self).inspect()
    }

    fn namer(&self) -> fn() -> &'static str {
        (**self).namer()
    }
}

/// Returns the box, if the process is a box.
///
/// # Errors
/// A process of another type.
#[doc(hidden)]
#[inline]
pub fn in_box<P: Process>(process: P) -> Result<Box<dyn Process>, P> {
    if TypeId::of::<P>() != TypeId::of::<Box<dyn Process>>() {
        return Err(process);
    }
    let mut process = Some(process);
    let any: &mut dyn Any = &mut process;
    let in_box = any.downcast_mut().and_then(Option::take);
    in_box.ok_or_else(|| unreachable!("the types are the same"))
}

/// A process has no entry point of this name. An error for [`Process::init`] to return.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {method:?}")]
pub struct UnknownMethod {
    /// The name.
    pub method: Box<str>,
}

impl UnknownMethod {
    /// Creates the error for `method`.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self {
            method: method.into(),
        }
    }
}
