//! The events in the lives of a scheduler's processes.

use ganger_proc_api::{ExitCause, Instant, Pid, Symbol};
use std::sync::Arc;

/// A change in the life of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeChange {
    /// The process has started: its `init` has returned, and it takes steps from now on.
    Started,
    /// The process has been upgraded: another has its PID and mailbox.
    Upgraded,
    /// The process has failed, and its supervisor has restarted it in place. A child that is not
    /// restarted in place ends, and another process starts.
    Restarted,
    /// The process has ended for this cause. Its PID is gone.
    Ended(ExitCause),
    /// The process is a supervisor, and the supervisor's state has changed.
    Supervisor(Box<SupervisorChange>),
}

/// A change in the state of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SupervisorChange {
    /// The first children have all been started. The supervisor's own start follows.
    Up,
    /// A child has ended, or has failed to start, and is going to be started again: at once, or
    /// after the wait of its back-off.
    Restarts {
        /// The name of the child.
        child: Arc<str>,
        /// The last end of the child; of a start that has failed, the text of the error.
        cause: ExitCause,
    },
    /// The children have failed too often, or a first start has failed. The supervisor stops the
    /// others, and then ends with a failure.
    GaveUp {
        /// The name of the child that failed last.
        child: Arc<str>,
        /// The last failure.
        cause: Arc<str>,
    },
    /// The supervisor stops its children, and then ends: by request, or because its significant
    /// children have ended.
    Stops,
}

/// A change in the life of a process, and the process at this moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LifeEvent {
    /// When it changed, by the clock of the scheduler.
    pub at: Instant,
    /// Its PID.
    pub pid: Pid,
    /// The parent, if any.
    pub parent: Option<Pid>,
    /// The method of its submission.
    pub method: Symbol,
    /// The name of its type: after an upgrade, of its new type.
    pub type_name: &'static str,
    /// Its label, where the scheduler counts: see [`Builder::observe`](crate::Builder::observe).
    pub label: Option<Arc<str>>,
    /// The change.
    pub change: LifeChange,
}

/// Is told of the lives of all processes: see [`Builder::watch_life`](crate::Builder::watch_life).
///
/// The thread that starts the process, and the worker that upgrades or ends it, make the calls, and
/// contain their panics. Neither call may block.
pub trait LifeWatch: Send + Sync + 'static {
    /// Returns whether changes are wanted at the moment. Otherwise no event is made.
    fn is_on(&self) -> bool;

    /// Notifies the watch of a process's change. The changes of each process come in their order.
    fn tell(&self, event: LifeEvent);
}
