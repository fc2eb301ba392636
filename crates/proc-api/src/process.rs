//! The state machine that users write.

use crate::{Events, Exclusive, Payloads, ProcessContext, StepOutput, Symbol};
use std::fmt;

/// Any error, as processes, handlers and lifecycle hooks report it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A process: a state machine that a scheduler moves on whenever something happened to it.
///
/// Its calls never overlap, and each sees all that the ones before it did, whatever threads they
/// run on. A panic in one of them ends the process and nothing else.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, Events, Process, StepOutput};
///
/// /// Adds up what it is sent, until it is cancelled.
/// #[derive(Default)]
/// struct Sum(u64);
///
/// impl Process for Sum {
///     fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
///         out.idle();
///         for event in events {
///             match event {
///                 Event::Message(message) => {
///                     self.0 += message.payloads.into_first().as_u64().ok_or("not a number")?;
///                 }
///                 Event::Cancel(_) => {
///                     out.done(self.0);
///                     // What comes after it is not to be taken, nor to decide otherwise.
///                     return Ok(());
///                 }
///                 _ => {}
///             }
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Process: Send + 'static {
    /// Prepares the process. Runs once, on the thread that submits it, before its PID is visible.
    ///
    /// `method` names the entry point. The default accepts every method and ignores the input.
    ///
    /// Who is sent something from here may answer before the PID exists, and gets `NotFound` for it: send
    /// requests from the first step.
    ///
    /// # Errors
    /// Whatever keeps the process from starting, [`UnknownMethod`] for a method that it does not
    /// have: it goes to the submitter, and nothing has been started.
    fn init(
        &mut self,
        ctx: &ProcessContext,
        method: &str,
        input: Payloads,
    ) -> Result<(), BoxError> {
        let _ = (ctx, method, input);
        Ok(())
    }

    /// Takes events, writes commands and an outcome. The first step may see no events.
    ///
    /// **A step that writes no outcome is called again at once**, and so keeps a core busy: a process that has
    /// to wait says so with [`out.idle()`](StepOutput::idle) or [`wait_for_yields`](StepOutput::wait_for_yields).
    /// Of several outcomes the last one counts, so that a step returns after [`done`](StepOutput::done) and
    /// [`upgrade`](StepOutput::upgrade).
    ///
    /// It should not block its thread and should return soon: other processes wait for the worker.
    ///
    /// # Errors
    /// An error ends the process with [`ExitReason::Failed`](crate::ExitReason::Failed). What the
    /// step yielded before is dispatched.
    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError>;

    /// Releases what the process holds. Runs exactly once for every process whose `init` returned
    /// `Ok`, whatever ends it, and never while `step` runs.
    fn close(&mut self) {}
}

impl Process for Box<dyn Process> {
    fn init(
        &mut self,
        ctx: &ProcessContext,
        method: &str,
        input: Payloads,
    ) -> Result<(), BoxError> {
        (**self).init(ctx, method, input)
    }

    fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        (**self).step(events, out)
    }

    fn close(&mut self) {
        (**self).close();
    }
}

/// A process has no entry point of that name; for [`Process::init`] to return.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {method:?}")]
pub struct UnknownMethod {
    /// The name.
    pub method: Box<str>,
}

impl UnknownMethod {
    /// The error for `method`.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self {
            method: method.into(),
        }
    }
}

/// Asks for a process to be replaced by another under the same PID.
///
/// The new process is created and initialised first; then the old one is closed; then the new one
/// steps. Messages that the old one has not taken go to the new one, those that arrived before the request
/// included; completions of commands that the old one yielded do not.
pub struct UpgradeRequest {
    /// What takes the process's place.
    pub target: UpgradeTarget,
    /// The entry point for the new process's `init`.
    pub method: Symbol,
    /// The input for the new process's `init`.
    pub input: Payloads,
}

/// What takes a process's place.
#[non_exhaustive]
pub enum UpgradeTarget {
    /// Whatever the factory of that name, registered with the scheduler, creates.
    Factory(Symbol),
    /// This process.
    Process(Exclusive<Box<dyn Process>>),
}

impl UpgradeRequest {
    /// An upgrade to what the factory `name` creates.
    #[must_use]
    pub fn factory(
        name: impl Into<Symbol>,
        method: impl Into<Symbol>,
        input: impl Into<Payloads>,
    ) -> Self {
        let target = UpgradeTarget::Factory(name.into());
        Self {
            target,
            method: method.into(),
            input: input.into(),
        }
    }

    /// An upgrade to `process`.
    #[must_use]
    pub fn process(
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl Into<Payloads>,
    ) -> Self {
        let target = UpgradeTarget::Process(Exclusive::new(Box::new(process)));
        Self {
            target,
            method: method.into(),
            input: input.into(),
        }
    }
}

impl fmt::Debug for UpgradeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeRequest")
            .field("target", &self.target)
            .field("method", &self.method)
            .field("input", &self.input)
            .finish()
    }
}

impl fmt::Debug for UpgradeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Factory(name) => f.debug_tuple("Factory").field(name).finish(),
            Self::Process(_) => f.write_str("Process(..)"),
        }
    }
}
