//! Refused and failed jobs.

use std::fmt;
use std::sync::Arc;

/// Why a pool has not completed a job: the error of the call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The queue is full.
    #[error("the pool is full: {queued} jobs wait")]
    Full {
        /// The number of waiting jobs.
        queued: usize,
    },
    /// The job has waited longer than it may.
    #[error("timed out: the job waited too long in the queue")]
    Expired,
    /// The worker panicked at each try of the job, at last with this message.
    #[error("the worker panicked: {0}")]
    Panicked(Box<str>),
    /// The pool is not running, or is stopping.
    #[error("the pool is stopping or has stopped")]
    Stopping,
}

/// A refused job, with the reason.
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

/// The handler of refused jobs: see [`Pool::on_refused`](crate::Pool::on_refused).
pub(super) type OnRefused<J> = Arc<dyn Fn(J, &PoolError) + Send + Sync>;
