//! Hooks at the start and the end of every process.

use crate::events::ExitReason;
use crate::values::{BoxError, Pid, Symbol};
use std::sync::Arc;

/// Hooks that a scheduler calls when processes start and end. A panic in a hook is contained and
/// reported.
///
/// A scheduler has a single implementation, which may call further ones. An `Arc` of an
/// implementation is an implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no hooks for the starts and ends of processes",
    note = "implement `Lifecycle` for it, with `on_start` or `on_complete`; it is \
            `Send + Sync + 'static`"
)]
pub trait Lifecycle: Send + Sync + 'static {
    /// Takes the start of a process, just before it: its `init` has returned, and it has not been
    /// queued. Runs on the submitting thread.
    ///
    /// # Errors
    /// An error or a panic rolls the start back: the PID is freed, `close` is called, and the
    /// submitter gets the error.
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        let _ = (pid, method);
        Ok(())
    }

    /// Takes the end of a process: its PID is gone. Called once for each started process.
    ///
    /// Runs on the worker that ends the process, after its `close`, and before the owner of the
    /// handle gets the reason. So a slow hook delays both. The hook must not block.
    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        let _ = (pid, reason);
    }
}

/// Hooks without any effect.
impl Lifecycle for () {}

impl<L: Lifecycle + ?Sized> Lifecycle for Arc<L> {
    fn on_start(&self, pid: Pid, method: Symbol) -> Result<(), BoxError> {
        (**self).on_start(pid, method)
    }

    fn on_complete(&self, pid: Pid, reason: &ExitReason) {
        (**self).on_complete(pid, reason);
    }
}
