//! Why a tree does not give what it was asked for.

use crate::view::ChildState;
use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::WrongAddress;
use std::sync::Arc;

/// Why there is no address of a child.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The supervisor has no child with that name, or none at that path.
    #[error("no child {path:?}; the supervisor has {there}")]
    NoChild {
        /// The name or path that was asked for.
        path: String,
        /// The names of the supervisor's children.
        there: String,
    },
    /// The child has no process now.
    #[error("the child {path:?} is not running: it {state}")]
    NotRunning {
        /// The name or path.
        path: String,
        /// What it does.
        state: ChildState,
    },
    /// The child takes other messages.
    #[error("the child {path:?}: {error}")]
    WrongType {
        /// The name or path.
        path: String,
        /// The types.
        error: WrongAddress,
    },
}

/// Why a wait at a tree is over without what it was for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The supervisor has ended.
    #[error(transparent)]
    Ended(#[from] TreeEnded),
    /// There is no such child, or it is stopped for good: it has ended and is not to be restarted,
    /// until [`restart_child`](crate::Tree::restart_child) says otherwise.
    #[error(transparent)]
    Child(#[from] AddressError),
    /// The time is over.
    #[error("timed out: the tree did not reach the state")]
    Timeout,
    /// The wait would block a worker of a scheduler, or the thread in its driver.
    #[error(
        "a wait at a tree would block a worker; a task awaits it, a step asks with \
         `out.ask(tree.wait_up(..), tag)`, and in others' code it is inside of `ctx.blocking(..)`"
    )]
    OnWorker,
    /// The scheduler has not been started.
    #[error(
        "the scheduler has not been started, so a wait at a tree would not end; start it by \
         `Builder::start` in the place of `build`, or by `Scheduler::start`"
    )]
    NotStarted,
}

/// A supervisor has ended, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the supervisor {supervisor} {pid} has ended: {cause}")]
#[non_exhaustive]
pub struct TreeEnded {
    /// What it is called.
    pub supervisor: Arc<str>,
    /// Its process.
    pub pid: Pid,
    /// How it has ended: as cancelled where it was stopped.
    pub cause: ExitCause,
}
