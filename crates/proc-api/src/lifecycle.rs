//! Hooks around every process's life.

use crate::{BoxError, ExitReason, Pid, Symbol};

/// Is told when processes start and end. A panic in a hook is contained and reported.
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
    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let _ = (pid, reason);
    }
}

/// Hooks that do nothing.
impl Lifecycle for () {}
