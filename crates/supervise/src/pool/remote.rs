//! The handles of a pool, through which it gets its jobs.

use super::entry::{Entry, PoolStats, Refusal};
use super::error::Refused;
use super::inline::Inline;
use super::queue::Queue;
use crate::tree::{Tree, TreeHandle};
use ganger_proc_api::{ExitReason, Reply};
use ganger_sched::internal::{Carried, HashKey};
use ganger_sched::{Call, Handle, WeakHandle};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Gives jobs to a pool. Cloning it is cheap.
pub struct PoolRemote<J, A> {
    /// Each clone has its own, so callers on different threads count no reference together.
    inner: Arc<Inner<J, A>>,
}

/// The state of a handle and its calls.
struct Inner<J, A> {
    queue: Arc<Queue<J, A>>,
    /// Runs jobs, in a pool without workers.
    inline: Option<Arc<Inline<J, A>>>,
    /// Keys of jobs are hashed with it.
    key: HashKey,
    /// The priority of this handle's jobs.
    priority: usize,
    /// The scheduler of the pool, if known: for callers that would wait in vain.
    scheduler: Option<WeakHandle>,
}

impl<J, A> PoolRemote<J, A> {
    pub(super) fn new(queue: Queue<J, A>, inline: Option<Inline<J, A>>) -> Self {
        Self::of(Inner {
            queue: Arc::new(queue),
            inline: inline.map(Arc::new),
            key: HashKey::random(),
            priority: 0,
            scheduler: None,
        })
    }

    fn of(inner: Inner<J, A>) -> Self {
        let inner = Arc::new(inner);
        Self { inner }
    }

    /// Returns the same handle, of a pool in this scheduler.
    pub(super) fn run_in(self, scheduler: &Handle) -> Self {
        let scheduler = Some(scheduler.downgrade());
        Self::of(Inner {
            scheduler,
            ..Inner::clone(&self.inner)
        })
    }

    pub(super) fn queue(&self) -> &Arc<Queue<J, A>> {
        &self.inner.queue
    }
}

impl<J: Send + 'static, A: Send + 'static> PoolRemote<J, A> {
    /// Calls the pool with a job, for a caller that waits for the answer. When the caller leaves
    /// before a worker has begun the job, the pool drops it.
    ///
    /// The error is the error of the worker's function, or a [`PoolError`].
    ///
    /// [`PoolError`]: crate::PoolError
    pub fn call(&self, job: J) -> Call<A> {
        self.ask(job, None)
    }

    /// Calls the worker of a key with a job. Jobs of equal keys run at the same worker. Each pool
    /// hashes keys with a secret, so strangers can't choose keys that all meet at a single worker.
    /// An inline pool has no workers, and ignores the key.
    pub fn call_by(&self, key: impl Hash, job: J) -> Call<A> {
        self.ask(job, Some(self.inner.key.hash(key)))
    }

    fn ask(&self, job: J, key: Option<u64>) -> Call<A> {
        let ask = move |inner: Arc<Inner<J, A>>, reply| {
            if let Err(refusal) = inner.admit(job, key, Some(reply)) {
                inner.queue.refuse(refusal);
            }
            Ok(())
        };
        Call::by_inside(Arc::clone(&self.inner), |it| it.scheduler.as_ref(), ask)
    }

    /// Sends a job without an answer. Never blocks, but an inline pool runs the job.
    ///
    /// # Errors
    /// [`Refused`], with the job inside.
    pub fn send(&self, job: J) -> Result<(), Refused<J>> {
        let sent = self.inner.admit(job, None, None);
        sent.map_err(|(entry, error)| Refused {
            job: entry.job,
            error,
        })
    }

    /// Returns the same pool, for jobs of this priority; workers begin jobs of higher priorities
    /// first. The default is 0, the lowest. A number above the pool's highest priority counts as
    /// the highest: see [`Pool::priorities`](crate::Pool::priorities).
    #[must_use]
    pub fn with_priority(&self, priority: usize) -> Self {
        Self::of(Inner {
            priority,
            ..Inner::clone(&self.inner)
        })
    }

    /// Suspends the pool: workers begin no job until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.inner.queue.suspend(true);
    }

    /// Resumes the pool: workers begin jobs again.
    pub fn resume(&self) {
        self.inner.queue.suspend(false);
    }

    /// Returns the counts of jobs, and the present state.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.inner.queue.stats()
    }
}

impl<J: Send + 'static, A: Send + 'static> Inner<J, A> {
    fn admit(
        &self,
        job: J,
        key: Option<u64>,
        reply: Option<Reply<A>>,
    ) -> Result<(), Refusal<J, A>> {
        let mut entry = Box::new(Entry::new(job, reply));
        entry.rank = self.queue.rank(self.priority);
        entry.cause = Carried::here();
        match &self.inline {
            None => self.queue.try_admit(entry, key),
            Some(inline) => {
                inline.serve(&self.queue, *self.queue.try_begin(entry)?);
                Ok(())
            }
        }
    }
}

impl<J, A> Clone for Inner<J, A> {
    fn clone(&self) -> Self {
        Self {
            queue: Arc::clone(&self.queue),
            inline: self.inline.clone(),
            key: self.key,
            priority: self.priority,
            scheduler: self.scheduler.clone(),
        }
    }
}

impl<J, A> Clone for PoolRemote<J, A> {
    fn clone(&self) -> Self {
        Self::of(Inner::clone(&self.inner))
    }
}

impl<J, A> fmt::Debug for PoolRemote<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolRemote")
            .field(&self.inner.queue.stats())
            .finish()
    }
}

/// A pool that runs. Dropping it leaves the pool alone.
pub struct PoolHandle<J, A> {
    tree: TreeHandle,
    remote: PoolRemote<J, A>,
}

impl<J: Send + 'static, A: Send + 'static> PoolHandle<J, A> {
    pub(super) fn new(tree: TreeHandle, remote: PoolRemote<J, A>) -> Self {
        Self { tree, remote }
    }

    /// Returns the supervisor with the workers.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns a handle for callers. Cloning it is cheap.
    #[must_use]
    pub fn remote(&self) -> PoolRemote<J, A> {
        self.remote.clone()
    }

    /// Refuses new jobs from now on, with [`PoolError::Stopping`]. When the admitted jobs are done,
    /// the pool ends. Returns at once.
    ///
    /// [`PoolError::Stopping`]: crate::PoolError::Stopping
    pub fn begin_stop(&self) {
        self.remote.queue().drain();
    }

    /// Stops the pool, and waits for its end, which is
    /// [`ExitReason::Cancelled`](ganger_proc_api::ExitReason::Cancelled) where all went well.
    pub fn stop(self) -> ExitReason {
        self.begin_stop();
        self.tree.wait()
    }

    /// Returns the handle of the supervisor: to wait for the end.
    #[must_use]
    pub fn into_tree(self) -> TreeHandle {
        self.tree
    }
}

impl<J, A> std::ops::Deref for PoolHandle<J, A> {
    type Target = PoolRemote<J, A>;

    fn deref(&self) -> &PoolRemote<J, A> {
        &self.remote
    }
}

impl<J, A> fmt::Debug for PoolHandle<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)
    }
}
