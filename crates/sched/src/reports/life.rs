//! What a scheduler tells of the lives of its processes.

use ganger_proc_api::{ExitCause, Instant, Pid, Symbol};
use std::sync::Arc;

/// A change in the life of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeChange {
    /// It has started: its `init` has returned, and it takes steps from now on.
    Started,
    /// It has been upgraded: another process has its PID and mailbox.
    Upgraded,
    /// It has failed, and its supervisor has restarted it in place. A child that is not restarted
    /// in place ends, and another process starts.
    Restarted,
    /// It has ended for this cause. Its PID is gone.
    Ended(ExitCause),
}

/// A change in the life of a process, and the process at that moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LifeEvent {
    /// When it changed, by the clock of the scheduler.
    pub at: Instant,
    /// Its PID.
    pub pid: Pid,
    /// The process that has started it, if any.
    pub parent: Option<Pid>,
    /// The method with which it was submitted.
    pub method: Symbol,
    /// The name of its type: after an upgrade, of its new type.
    pub type_name: &'static str,
    /// Its label, where the scheduler counts: see [`Builder::observe`](crate::Builder::observe).
    pub label: Option<Arc<str>>,
    /// What has changed.
    pub change: LifeChange,
}

/// Is told of the lives of all processes: see [`Builder::watch_life`](crate::Builder::watch_life).
///
/// The thread that starts the process, and the worker that upgrades or ends it, make the calls, and
/// contain their panics. Neither call may block.
pub trait LifeWatch: Send + Sync + 'static {
    /// Whether changes are wanted at the moment. Otherwise no event is made.
    fn is_on(&self) -> bool;

    /// A process has changed. The changes of one process come in their order.
    fn tell(&self, event: LifeEvent);
}
