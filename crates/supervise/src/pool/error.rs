//! Jobs that a pool does not carry out.

use std::fmt;
use std::sync::Arc;

/// Why a pool has not carried a job out. It is the error of the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// As many jobs wait as may wait.
    #[error("the pool is full: {queued} jobs wait")]
    Full {
        /// How many wait.
        queued: usize,
    },
    /// The job has waited longer than it may.
    #[error("timed out: the job waited too long in the queue")]
    Expired,
    /// The worker panicked with the job, with this message, as often as it was tried.
    #[error("the worker panicked: {0}")]
    Panicked(Box<str>),
    /// The pool is stopping, or has stopped, or was not started yet.
    #[error("the pool is stopping or has stopped")]
    Stopping,
}

/// A job that a pool has refused, with the reason.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refused<J> {
    /// The job.
    pub job: J,
    /// The reason.
    pub error: PoolError,
}

impl<J> fmt::Debug for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Refused").field(&self.error).finish()
    }
}

/// Takes the jobs that are refused: see [`Pool::on_refused`](crate::Pool::on_refused).
pub(super) type OnRefused<J> = Arc<dyn Fn(J, &PoolError) + Send + Sync>;
