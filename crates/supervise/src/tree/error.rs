//! Why a tree has no address, and why a wait at it fails.

use crate::view::ChildState;
use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::WrongAddress;
use std::sync::Arc;

/// Why a child has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The supervisor has no child with this name or path.
    #[error("no child {path:?}; the supervisor has {there}")]
    NoChild {
        /// The requested name or path.
        path: String,
        /// The names of the supervisor's children.
        there: String,
    },
    /// The child has no process now.
    #[error("the child {path:?} is not running: it {state}")]
    NotRunning {
        /// The name or path.
        path: String,
        /// The child's state.
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

/// Why a wait at a tree has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The supervisor has ended.
    #[error(transparent)]
    Ended(#[from] TreeEnded),
    /// The child is unknown, or is stopped for good: it has ended and stays stopped until
    /// [`restart_child`](crate::Tree::restart_child) says otherwise.
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
    /// The supervisor's name.
    pub supervisor: Arc<str>,
    /// Its process.
    pub pid: Pid,
    /// The supervisor's end: cancelled after a stop.
    pub cause: ExitCause,
}
