//! Hooks around every process's life.

use crate::{BoxError, ExitReason, Pid, Symbol};
use std::sync::Arc;

/// Is told when processes start and end. A panic in a hook is contained and reported.
///
/// There is one for a scheduler; to do several things, it calls several. An `Arc` of one is one.
pub trait Lifecycle: Send + Sync + 'static {
    /// A process is about to start: its PID is visible, it has not been queued yet. Runs on the
    /// submitting thread.
    ///
    /// # Errors
    /// An error (or a panic) rolls the start back: the PID is gone, `close` has been called, and
    /// the submitter gets the error.
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        let _ = (pid, method);
        Ok(())
    }

    /// A process has ended: its PID is gone. Called once for each process that was started.
    ///
    /// Runs on the worker that has run the process, after its `close`, and before whoever waits for the process gets
    /// the reason: a hook that takes its time keeps both. Not to block.
    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let _ = (pid, reason);
    }
}

/// Hooks that do nothing.
impl Lifecycle for () {}

impl<L: Lifecycle + ?Sized> Lifecycle for Arc<L> {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        (**self).on_start(pid, method)
    }

    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        (**self).on_complete(pid, reason);
    }
}
