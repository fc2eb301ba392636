//! Jobs on their way, what limits them, and what has become of them.

use super::error::PoolError;
use super::policy::Overload;
use crate::plan::BackOff;
use ganger_proc_api::{EndWatch, Reply};
use ganger_sched::Instant;
use std::time::Duration;

/// Where the time of a job does not count.
pub(super) const START: Instant = Instant::from_nanos(0);

/// A job that was not admitted, with the reason.
pub(super) type Refusal<J, A> = (Entry<J, A>, PoolError);

/// A job on its way to a worker.
pub(crate) struct Entry<J, A> {
    pub(crate) job: J,
    pub(crate) reply: Option<Reply<A>>,
    /// How often it was tried before.
    pub(crate) tries: u32,
    /// When it was admitted, where that counts, and as which one.
    pub(super) since: Instant,
    pub(super) number: u64,
    /// How many priorities are above its own.
    pub(super) rank: usize,
    /// The worker that it is for, if it is for one.
    pub(super) worker: Option<usize>,
    /// Has its caller tell of its leaving, while it waits.
    pub(super) watch: Option<EndWatch>,
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
        }
    }
}

impl<J, A: Send + 'static> Entry<J, A> {
    /// Whether its caller has left.
    pub(super) fn has_left(&self) -> bool {
        self.reply.as_ref().is_some_and(Reply::is_cancelled)
    }

    /// Whether its caller is there, which from now on tells of its leaving.
    pub(super) fn is_there(&mut self, of: LineOf, watch: Watch<'_, A>) -> bool {
        let Some(reply) = &self.reply else {
            return true;
        };
        self.watch = watch(reply, of, self.number);
        self.watch.is_some() && !reply.is_cancelled()
    }
}

/// Which line a job waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineOf {
    /// A worker's own, or one of all.
    pub(super) worker: Option<usize>,
    /// How many priorities are above its own.
    pub(super) rank: usize,
}

/// Has the caller of the job with that number, in that line, tell of its leaving. Nothing when it
/// has left.
pub(super) type Watch<'a, A> = &'a dyn Fn(&Reply<A>, LineOf, u64) -> Option<EndWatch>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) most: usize,
    pub(super) overload: Overload,
    pub(super) time_to_live: Option<Duration>,
    /// How many priorities there are.
    pub(super) priorities: usize,
    /// The waits between the tries of a job, if it waits.
    pub(super) retry: Option<BackOff>,
    /// One more worker is started when a job has waited for so long; `None` if at once.
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
    /// Whether the time counts.
    pub(super) fn has_times(&self) -> bool {
        self.time_to_live.is_some() || self.patience.is_some() || self.retry.is_some()
    }

    /// When a job that was not begun has waited for too long.
    pub(super) fn expiry<J, A>(&self, entry: &Entry<J, A>) -> Instant {
        match self.time_to_live {
            Some(time) => entry.since.after(time),
            None => Instant::NEVER,
        }
    }
}

/// What has become of the jobs of a pool, and what is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Jobs that wait.
    pub queued: usize,
    /// Jobs that are being carried out.
    pub in_flight: usize,
    /// Workers that run.
    pub workers: usize,
    /// Those of them that wait for a job.
    pub idle: usize,
    /// Jobs that were carried out, with an answer or an error.
    pub served: u64,
    /// Jobs with which a worker panicked for good.
    pub panicked: u64,
    /// Jobs that were put back after a panic or, with [`Pool::retry`](crate::Pool::retry), an
    /// error.
    pub retried: u64,
    /// Jobs that were refused because too many waited, or the pool did not run.
    pub refused: u64,
    /// Jobs that had waited too long.
    pub expired: u64,
    /// Jobs whose callers had left before they were begun.
    pub left: u64,
}
