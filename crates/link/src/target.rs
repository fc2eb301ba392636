//! The target of a call.

use ganger_proc_api::Pid;
use ganger_sched::{Address, Handle, ProcessHandle};

/// Names the process for a call: a PID, an address, a handle, or a name, which is resolved at each
/// call.
pub trait Target {
    /// Gives the PID as this scheduler knows it: without a node for processes of its node.
    ///
    /// # Errors
    /// [`TargetError`] when no process has the name, or the PID is of another scheduler and this
    /// one has no [remote](ganger_sched::Builder::remote).
    fn pid_in(&self, scheduler: &Handle) -> Result<Pid, TargetError>;
}

/// No process that the scheduler can reach is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No process has this name.
    #[error("no process is registered as {0:?}")]
    NoSuchName(Box<str>),
    /// The PID is of another scheduler, and no connection leads from this scheduler to others.
    #[error("{0} is not a process of this scheduler")]
    Elsewhere(Pid),
    /// The caller itself has no scheduler.
    #[error("the caller is not a process of a scheduler")]
    Detached,
}

impl Target for Pid {
    fn pid_in(&self, scheduler: &Handle) -> Result<Pid, TargetError> {
        if scheduler.is_local(*self) || scheduler.remote().is_some() {
            // A PID with the scheduler's node is the same process.
            Ok(scheduler.canonical(*self))
        } else {
            Err(TargetError::Elsewhere(*self))
        }
    }
}

impl Target for &str {
    fn pid_in(&self, scheduler: &Handle) -> Result<Pid, TargetError> {
        let found = scheduler.whereis(self);
        found.ok_or_else(|| TargetError::NoSuchName((*self).into()))
    }
}

impl<M> Target for &Address<M> {
    fn pid_in(&self, scheduler: &Handle) -> Result<Pid, TargetError> {
        self.pid().pid_in(scheduler)
    }
}

impl<M> Target for &ProcessHandle<M> {
    fn pid_in(&self, scheduler: &Handle) -> Result<Pid, TargetError> {
        self.pid().pid_in(scheduler)
    }
}
