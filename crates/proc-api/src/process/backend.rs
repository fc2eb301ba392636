//! The requests of a context to the scheduler that runs its process.

use super::{Process, RegisterNameError, RegisterNameErrorKind, SubmitError, SubmitErrorKind};
use crate::commands::{CommandError, Tag};
use crate::events::{CancelReason, MonitorError};
use crate::raw::Kind;
use crate::values::{Envelope, NodeName, Payloads, Pid, SendError, SendErrorKind, Symbol};
use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

/// A scheduler's side of a [`Context`](crate::Context).
pub trait ContextBackend: Any + Send + Sync {
    /// Returns the process's own PID.
    fn pid(&self) -> Pid;

    /// Has the process take only messages of this kind, until the process is replaced.
    fn accept_only(&self, kind: Kind) {
        let _ = kind;
    }

    /// Returns the name of the process's node, if the node has a name.
    fn node_name(&self) -> Option<NodeName> {
        None
    }

    /// Sends an envelope to a process of the same host, or on to the router. Never blocks.
    ///
    /// # Errors
    /// [`SendError`] with the envelope inside.
    fn send(&self, envelope: Envelope) -> Result<(), SendError>;

    /// Sends a control message. A backend without control messages sends an ordinary message.
    ///
    /// # Errors
    /// [`SendError`] with the envelope inside.
    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.send(envelope)
    }

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

    /// Submits another process with this PID. A backend that chooses all PIDs itself refuses it.
    ///
    /// # Errors
    /// [`SubmitError`] with the process inside where it was refused.
    fn submit_as(
        &self,
        pid: Pid,
        process: Box<dyn Process>,
        method: Symbol,
        input: Payloads,
    ) -> Result<Pid, SubmitError> {
        let _ = method;
        let why = "the scheduler of this process chooses all PIDs itself";
        let refused = SubmitError::new(SubmitErrorKind::InvalidPid { pid, why });
        Err(refused.with_process(process, input))
    }

    /// Monitors `target`: the process gets a notice with this tag when the target ends.
    ///
    /// # Errors
    /// [`MonitorError`] when the target can't be monitored from here.
    fn monitor(self: Arc<Self>, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        let _ = tag;
        Err(MonitorError { pid: target })
    }

    /// Removes the process's monitors of `target` with this tag.
    fn demonitor(&self, target: Pid, tag: Tag) {
        let _ = (target, tag);
    }

    /// Gives the process a name.
    ///
    /// # Errors
    /// [`RegisterNameError`] when another process has the name, or the backend has no names.
    fn register_name(self: Arc<Self>, name: &str) -> Result<(), RegisterNameError> {
        Err(RegisterNameError {
            name: name.into(),
            pid: self.pid(),
            kind: RegisterNameErrorKind::NotFound,
        })
    }

    /// Returns the process with this name.
    fn whereis(&self, name: &str) -> Option<Pid> {
        let _ = name;
        None
    }

    /// Asks another process to finish.
    ///
    /// # Errors
    /// [`NotFound`] when the backend has no process with this PID.
    fn cancel(&self, target: Pid, reason: CancelReason) -> Result<(), NotFound> {
        let _ = reason;
        Err(NotFound { pid: target })
    }

    /// Ends another process: it takes no further step.
    ///
    /// # Errors
    /// [`NotFound`] when the backend has no process with this PID.
    fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        Err(NotFound { pid: target })
    }

    /// Returns a waker that has the process take a step. By default, the waker does nothing.
    fn waker(self: Arc<Self>) -> Waker {
        Waker::noop().clone()
    }

    /// Returns whether the process has been asked to finish.
    fn is_cancelled(&self) -> bool;

    /// Takes note of a failed command whose actor takes no answers.
    fn leaves_answer(&self, tag: Tag, error: &CommandError) {
        let _ = (tag, error);
    }

    /// Has the waker woken when the process is asked to finish or ends. The waker replaces the
    /// waker of an earlier call with this key. Returns the key of the waker, or `None`, and keeps
    /// no waker, when the process has been asked to finish already, or has ended. By default, keeps
    /// no waker.
    fn watch_cancel(&self, key: Option<u64>, waker: &Waker) -> Option<u64> {
        let _ = (key, waker);
        (!self.is_cancelled()).then_some(0)
    }

    /// Forgets the waker with this key, unless it has been woken.
    fn unwatch_cancel(&self, key: u64) {
        let _ = key;
    }

    /// Calls `f` once. The call is about to block this thread.
    fn block(&self, f: &mut dyn FnMut()) {
        f();
    }

    /// Returns whether the step on this thread has used up its share of time while other processes
    /// wait.
    fn should_yield(&self) -> bool {
        false
    }
}

/// No live process has this PID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no process has the PID {pid}")]
pub struct NotFound {
    /// The PID.
    pub pid: Pid,
}

/// The backend of a context without a scheduler.
pub(crate) struct Detached(pub(crate) Pid);

impl ContextBackend for Detached {
    fn pid(&self) -> Pid {
        self.0
    }

    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        Err(SendError::new(SendErrorKind::HostNotFound, envelope))
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
