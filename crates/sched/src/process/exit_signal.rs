//! Signals that end a process, or notify it, unless they are void by then.

use ganger_proc_api::{ExitCause, ExitNotice};
use std::fmt::Debug;

/// A signal that decides on its arrival whether it ends a process: for crates that build on the
/// scheduler, such as links. See [`SystemEvent::Signal`](crate::SystemEvent::Signal).
///
/// The worker asks it before the next step of the process, between the steps. So the process's
/// statements in a step count: to be notified, or to ignore the signal.
pub trait ExitSignal: Debug + Send + Sync + 'static {
    /// Decides. The call should be short; a panic is contained, and nothing is done.
    fn arrive(self: Box<Self>) -> Arrived;
}

/// The decision of an [`ExitSignal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrived {
    /// The signal is void.
    Nothing,
    /// The process is told, in the order of its system events.
    Notice(ExitNotice),
    /// The process ends with [`ExitReason::Exited`](ganger_proc_api::ExitReason::Exited).
    End(ExitCause),
}
