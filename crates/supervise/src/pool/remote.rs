//! The handles of a pool, through which it gets its jobs.

use super::entry::{Entry, PoolStats, Refusal};
use super::error::Refused;
use super::inline::Inline;
use super::queue::Queue;
use crate::tree::{Tree, TreeHandle};
use ganger_proc_api::{ExitReason, Reply};
use ganger_sched::internal::HashKey;
use ganger_sched::{Call, Handle, WeakHandle};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// Gives jobs to a pool. Cloning it is cheap.
pub struct PoolRemote<J, A> {
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
        Self {
            queue: Arc::new(queue),
            inline: inline.map(Arc::new),
            key: HashKey::random(),
            priority: 0,
            scheduler: None,
        }
    }

    /// The same handle, of a pool in this scheduler.
    pub(super) fn run_in(self, scheduler: &Handle) -> Self {
        let scheduler = Some(scheduler.downgrade());
        Self { scheduler, ..self }
    }

    pub(super) fn queue(&self) -> &Arc<Queue<J, A>> {
        &self.queue
    }
}

impl<J: Send + 'static, A: Send + 'static> PoolRemote<J, A> {
    /// A job whose answer the caller waits for. When the caller leaves before a worker has begun
    /// the job, the pool drops it.
    ///
    /// The error is the error of the worker's function, or a [`PoolError`].
    ///
    /// [`PoolError`]: crate::PoolError
    pub fn call(&self, job: J) -> Call<A> {
        self.ask(job, None)
    }

    /// A job for the worker of a key. Jobs of equal keys run at the same worker. Each pool hashes
    /// keys with a secret, so strangers can't choose keys that all meet at a single worker. An
    /// inline pool has no workers, and ignores the key.
    pub fn call_by(&self, key: impl Hash, job: J) -> Call<A> {
        self.ask(job, Some(self.key.hash(key)))
    }

    fn ask(&self, job: J, key: Option<u64>) -> Call<A> {
        let this = self.clone();
        let call = Call::by(move |reply| {
            if let Err(refusal) = this.admit(job, key, Some(reply)) {
                this.queue.refuse(refusal);
            }
            Ok(())
        });
        match &self.scheduler {
            Some(scheduler) => call.answered_in(scheduler),
            None => call,
        }
    }

    fn admit(
        &self,
        job: J,
        key: Option<u64>,
        reply: Option<Reply<A>>,
    ) -> Result<(), Refusal<J, A>> {
        let mut entry = Entry::new(job, reply);
        entry.rank = self.queue.rank(self.priority);
        match &self.inline {
            None => self.queue.try_admit(entry, key),
            Some(inline) => {
                inline.serve(&self.queue, self.queue.try_begin(entry)?);
                Ok(())
            }
        }
    }

    /// A job without an answer. Never blocks, but an inline pool runs the job.
    ///
    /// # Errors
    /// [`Refused`], with the job inside.
    pub fn send(&self, job: J) -> Result<(), Refused<J>> {
        let sent = self.admit(job, None, None);
        sent.map_err(|(Entry { job, .. }, error)| Refused { job, error })
    }

    /// The same pool, for jobs of this priority; workers begin jobs of higher priorities first. The
    /// default is 0, the lowest. A number above the pool's highest priority counts as the highest:
    /// see [`Pool::priorities`](crate::Pool::priorities).
    #[must_use]
    pub fn with_priority(&self, priority: usize) -> Self {
        Self {
            priority,
            ..self.clone()
        }
    }

    /// Workers begin no job from now on, until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.queue.suspend(true);
    }

    /// Workers begin jobs again.
    pub fn resume(&self) {
        self.queue.suspend(false);
    }

    /// The counts of jobs, and the present state.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.queue.stats()
    }
}

impl<J, A> Clone for PoolRemote<J, A> {
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

impl<J, A> fmt::Debug for PoolRemote<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolRemote")
            .field(&self.queue.stats())
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

    /// The supervisor with the workers.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// A handle for callers. Cloning it is cheap.
    #[must_use]
    pub fn remote(&self) -> PoolRemote<J, A> {
        self.remote.clone()
    }

    /// The pool refuses new jobs from now on, with [`PoolError::Stopping`]. When the admitted jobs
    /// are done, the pool ends. Returns at once.
    ///
    /// [`PoolError::Stopping`]: crate::PoolError::Stopping
    pub fn begin_stop(&self) {
        self.remote.queue.drain();
    }

    /// Stops the pool, and waits for its end, which is
    /// [`ExitReason::Cancelled`](ganger_proc_api::ExitReason::Cancelled) where all went well.
    pub fn stop(self) -> ExitReason {
        self.begin_stop();
        self.tree.wait()
    }

    /// The handle of the supervisor: to wait for the end.
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
