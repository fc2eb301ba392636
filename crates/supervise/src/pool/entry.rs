//! Jobs on their way, their limits and their counts.

use super::error::PoolError;
use super::policy::Overload;
use crate::plan::BackOff;
use ganger_proc_api::{EndWatch, Reply};
use ganger_sched::Instant;
use ganger_sched::internal::Carried;
use std::time::Duration;

/// The admission time of a job in a pool without time limits.
pub(super) const START: Instant = Instant::from_nanos(0);

/// A refused job, with the reason.
pub(super) type Refusal<J, A> = (Queued<J, A>, PoolError);

/// A job as the queue has it: under the lock, nothing of it is moved or looked at.
pub(crate) type Queued<J, A> = Box<Entry<J, A>>;

/// A job on its way to a worker.
pub(crate) struct Entry<J, A> {
    pub(crate) job: J,
    pub(crate) reply: Option<Reply<A>>,
    /// The number of earlier tries.
    pub(crate) tries: u32,
    /// The time of the admission, where times count, and its number.
    pub(super) since: Instant,
    pub(super) number: u64,
    /// The number of higher priorities.
    pub(super) rank: usize,
    /// The only worker that may take the job; `None` if any may.
    pub(super) worker: Option<usize>,
    /// Reports when the caller leaves, while the job waits.
    pub(super) watch: Option<EndWatch>,
    /// The cause of the job, where steps are traced.
    pub(super) cause: Carried,
}

impl<J, A> Entry<J, A> {
    pub(super) fn new(job: J, reply: Option<Reply<A>>) -> Self {
        Self {
            rank: 0,
            worker: None,
            job,
            reply,
            tries: 0,
            since: START,
            number: 0,
            watch: None,
            cause: Carried::default(),
        }
    }
}

impl<J, A: Send + 'static> Entry<J, A> {
    /// Returns whether the caller has left.
    pub(super) fn has_left(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::is_cancelled)
    }

    /// Checks whether the caller is there. If so, the queue hears from now on when the caller
    /// leaves.
    pub(super) fn is_there(&mut self, of: LineOf, watch: Watch<'_, A>) -> bool {
        let Some(reply) = &self.reply else {
            return true;
        };
        self.watch = watch(reply, of, self.number);
        self.watch.is_some() && !reply.is_cancelled()
    }
}

/// The line in which a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineOf {
    /// A worker's own line, or a common line.
    pub(super) worker: Option<usize>,
    /// The number of higher priorities.
    pub(super) rank: usize,
}

/// Registers the queue for the leaving of a job's caller, by the line and the number of the job.
/// Returns `None` when the caller has left.
pub(super) type Watch<'a, A> = &'a dyn Fn(&Reply<A>, LineOf, u64) -> Option<EndWatch>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) overload: Overload,
    pub(super) time_to_live: Option<Duration>,
    /// The number of priorities.
    pub(super) priorities: usize,
    /// The waits between the tries of a job, if there must be any.
    pub(super) retry: Option<BackOff>,
    /// The wait of a job after which the front starts another worker; `None`: at once.
    pub(super) patience: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            most: usize::MAX,
            overload: Overload::Wait,
            time_to_live: None,
            priorities: 1,
            retry: None,
            patience: None,
        }
    }
}

impl Limits {
    /// Returns whether the queue needs the times of jobs.
    pub(super) fn has_times(&self) -> bool {
        self.time_to_live.is_some() || self.patience.is_some() || self.retry.is_some()
    }

    /// Returns whether each job is admitted, and all wait in a single line.
    pub(super) fn is_plain(&self) -> bool {
        self.overload == Overload::Wait && self.priorities == 1 && !self.has_times()
    }

    /// Returns the time at which a fresh job expires.
    pub(super) fn expiry<J, A>(&self, entry: &Entry<J, A>) -> Instant {
        match self.time_to_live {
            Some(time) => entry.since.after(time),
            None => Instant::NEVER,
        }
    }
}

/// The counts of a pool: jobs by their ends, and the present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Waiting jobs.
    pub queued: usize,
    /// Jobs in the hands of workers.
    pub in_flight: usize,
    /// Running workers.
    pub workers: usize,
    /// Running workers without a job.
    pub idle: usize,
    /// Completed jobs, with an answer or an error.
    pub served: u64,
    /// Jobs whose last try was a panic.
    pub panicked: u64,
    /// Retries, after a panic or, with [`Pool::retry`](crate::Pool::retry), an error.
    pub retried: u64,
    /// Jobs refused by a full or stopped pool.
    pub refused: u64,
    /// Jobs that waited too long.
    pub expired: u64,
    /// Jobs dropped because their callers had left.
    pub left: u64,
}
