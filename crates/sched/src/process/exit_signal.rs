//! Signals that end a process, or tell it something, unless they do not count any more.

use ganger_proc_api::{ExitCause, ExitNotice};
use std::fmt::Debug;

/// What decides when it arrives whether it ends a process: for crates that build on the scheduler,
/// such as links. See [`SystemEvent::Signal`](crate::SystemEvent::Signal).
///
/// The worker asks it before the next step of the process, between the steps. So what the process
/// has said in a step counts: that it wants to be told, or that the signal is not for it any more.
pub trait ExitSignal: Debug + Send + Sync + 'static {
    /// What there is to do. It should be short; a panic is contained, and nothing is done.
    fn arrive(self: Box<Self>) -> Arrived;
}

/// What an [`ExitSignal`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arrived {
    /// It does not count any more.
    Nothing,
    /// The process is told, in the order of its system events.
    Notice(ExitNotice),
    /// The process ends with [`ExitReason::Exited`](ganger_proc_api::ExitReason::Exited).
    End(ExitCause),
}
