//! A child of a set, and why it has no result.

use crate::error::text;
use ganger_proc_api::{BoxError, CancelReason, ExitCause, Pid, SubmitError};
use std::fmt;

/// A child of a [`TaskSet`](crate::TaskSet): the number of the call that has started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(super) u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A child of a [`TaskSet`](crate::TaskSet) has no result.
#[derive(Debug, thiserror::Error)]
#[error("the child {id} of the set has ended: {cause}")]
#[non_exhaustive]
pub struct TaskError {
    /// The child: what the call has returned that has started it.
    pub id: TaskId,
    /// Its PID; `None` for one that was never started.
    pub pid: Option<Pid>,
    /// How it has ended. One that was cancelled before it started has ended as cancelled, and one
    /// that could not be started has failed.
    pub cause: ExitCause,
    /// The child's own error, or why it could not be started.
    pub source: Option<BoxError>,
}

impl TaskError {
    pub(crate) fn new(id: TaskId, pid: Pid, cause: ExitCause, source: Option<BoxError>) -> Self {
        let pid = Some(pid);
        Self {
            id,
            pid,
            cause,
            source,
        }
    }

    pub(crate) fn not_started(id: TaskId, reason: CancelReason) -> Self {
        let cause = ExitCause::Cancelled(reason);
        Self {
            id,
            pid: None,
            cause,
            source: None,
        }
    }

    pub(crate) fn refused(id: TaskId, error: SubmitError) -> Self {
        let source = BoxError::from(error);
        let cause = ExitCause::Failed(text(&source).into());
        Self {
            id,
            pid: None,
            cause,
            source: Some(source),
        }
    }
}
