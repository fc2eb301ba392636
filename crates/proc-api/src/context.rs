//! What a process may ask of the scheduler that runs it.

use crate::{
    CancelToken, Package, Payloads, Pid, Process, SendError, SendErrorKind, SubmitError,
    SubmitErrorKind, Symbol,
};
use std::fmt;
use std::sync::Arc;

/// A scheduler's side of a [`ProcessContext`].
pub trait ContextBackend: Send + Sync {
    /// The process's own PID.
    fn pid(&self) -> Pid;

    /// Sends a package: to a process of the same host, or on to the router. Never blocks.
    ///
    /// # Errors
    /// [`SendError`] with the package inside.
    fn send(&self, package: Package) -> Result<(), SendError>;

    /// Submits another process.
    ///
    /// # Errors
    /// [`SubmitError`] with the process inside where it was refused.
    fn submit(
        &self,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError>;

    /// Whether the process has been asked to finish.
    fn is_cancelled(&self) -> bool;
}

/// A process's own view of the scheduler: given to [`Process::init`], cloned and kept by processes
/// that need it in their steps.
///
/// ```
/// use ganger_proc_api::{BoxError, Events, Payloads, Pid, Process, ProcessContext, StepOutput};
///
/// struct Greeter {
///     ctx: Option<ProcessContext>,
///     friend: Pid,
/// }
///
/// impl Process for Greeter {
///     fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
///         self.ctx = Some(ctx.clone());
///         Ok(())
///     }
///
///     fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
///         if let Some(ctx) = &self.ctx {
///             ctx.send(self.friend, "greeting", "hello")?;
///         }
///         out.done(());
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ProcessContext {
    backend: Arc<dyn ContextBackend>,
}

impl ProcessContext {
    /// A context that is served by `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// A context of no scheduler, for unit tests of processes: every send is answered with
    /// [`SendErrorKind::HostNotFound`], every submit with [`SubmitErrorKind::Stopping`].
    #[must_use]
    pub fn detached(pid: Pid) -> Self {
        Self::new(Arc::new(Detached(pid)))
    }

    /// The process's own PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.backend.pid()
    }

    /// Sends a message by PID, with this process as its source. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the package inside, when nobody took it.
    pub fn send(
        &self,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl Into<Payloads>,
    ) -> Result<(), SendError> {
        self.send_package(Package::new(self.pid(), target, topic, payloads))
    }

    /// Sends a package as it is, whatever its source. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the package inside, when nobody took it.
    pub fn send_package(&self, package: Package) -> Result<(), SendError> {
        self.backend.send(package)
    }

    /// Submits another process to the same scheduler. Its `init` runs before this returns.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside where it was refused.
    pub fn submit(
        &self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl Into<Payloads>,
    ) -> Result<Pid, SubmitError> {
        self.backend
            .submit(Box::new(process), method.into(), input.into())
    }

    /// Whether the process has been asked to finish. Never blocks.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.backend.is_cancelled()
    }

    /// A token that shows others whether the process has been asked to finish.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::new(Arc::clone(&self.backend))
    }
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessContext")
            .field("pid", &self.pid())
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

struct Detached(Pid);

impl ContextBackend for Detached {
    fn pid(&self) -> Pid {
        self.0
    }

    fn send(&self, package: Package) -> Result<(), SendError> {
        Err(SendError::new(SendErrorKind::HostNotFound, package))
    }

    fn submit(
        &self,
        process: Box<dyn Process>,
        _method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        Err(SubmitError::new(SubmitErrorKind::Stopping).with_process(process, input))
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
