//! The children of a set, and their failures.

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
    /// The child, as `spawn` has returned it.
    pub id: TaskId,
    /// Its PID; `None` if the child never started.
    pub pid: Option<Pid>,
    /// Its end. A child cancelled before its start has ended as cancelled, and a failed start
    /// counts as a failure.
    pub cause: ExitCause,
    /// The child's own error, or the error of its start.
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
