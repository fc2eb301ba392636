//! Pools: workers that carry jobs out.
//!
//! **Problem.** Many callers have jobs, and few workers carry them out. A worker may panic, a
//! caller may leave, and the pool may stop, each at any moment.
//!
//! **Protocol.** A pool is a supervisor with a front and workers.
//!
//! 1. Each call goes to the front, a process, which admits the job or refuses it, under the lock of
//!    [`Queue`]. The stop of a pool takes the same lock. So a job is either refused or carried out.
//! 2. A worker that finds no job notes under the lock that it is idle. A job that is admitted wakes
//!    an idle worker.
//! 3. A worker that takes a job skips those whose callers have left, and those that are too old.
//! 4. A worker whose job panics answers that job, or puts it back, and then fails. It is restarted
//!    in place, and what waits for it stays.
//!
//! **Imports**: supervisors.

mod front;
mod queue;
mod worker;

use self::front::{Front, Order};
use self::queue::{Limits, Queue};
use self::worker::Worker;
use crate::child::Child;
use crate::supervisor::Supervisor;
use crate::tree::{Tree, TreeHandle};
use ganger_proc_api::{BoxError, ExitReason, SendError, SubmitError};
use ganger_sched::{Address, Call, Handle};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use self::queue::PoolStats;

/// What a worker does with a job.
type Work<J, A> = Box<dyn FnMut(J) -> Result<A, BoxError> + Send>;
pub(crate) type MakeWork<J, A> = Arc<dyn Fn() -> Work<J, A> + Send + Sync>;

/// Which worker gets a job that is called without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Routing {
    /// The first that is free.
    #[default]
    Free,
    /// Each in turn.
    RoundRobin,
    /// That which has the fewest jobs, the one in hand included.
    LeastLoaded,
}

/// What becomes of jobs that find as many waiting as may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overload {
    /// They wait nevertheless, and their callers with them, in the order of the calls.
    #[default]
    Wait,
    /// They are refused.
    RefuseNewest,
    /// The job that has waited longest is refused in their place.
    RefuseOldest,
}

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
    #[error("the job has waited too long")]
    Expired,
    /// The worker panicked with the job, with this message, as often as it was tried.
    #[error("the worker panicked: {0}")]
    Panicked(Box<str>),
    /// The pool is stopping, or has stopped.
    #[error("the pool is stopping")]
    Stopping,
}

/// Workers that carry jobs out: `J` is a job, `A` its answer.
///
/// Each worker is a process with a function of its own. The function may block: the scheduler then
/// gives the other processes of its thread to another one.
///
/// ```
/// use ganger_proc_api::BoxError;
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{Overload, Pool};
/// use ganger_time::Timers;
/// use std::sync::Arc;
///
/// let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).build()?;
/// scheduler.start()?;
/// let pool = Pool::new(4, || |by: u32| Ok(100 / by))
///     .queue(1_000, Overload::RefuseNewest)
///     .start(&scheduler)?;
/// assert_eq!(pool.call(7).wait()?, 14);
/// assert!(pool.call(0).wait().is_err()); // The worker panics, and is replaced.
/// assert_eq!(pool.call(50).wait()?, 2);
/// pool.stop();
/// # Ok::<(), BoxError>(())
/// ```
pub struct Pool<J, A> {
    label: Arc<str>,
    workers: Range<usize>,
    make: MakeWork<J, A>,
    routing: Routing,
    limits: Limits,
    intensity: (u32, Duration),
    idle: Duration,
    retries: u32,
    copy: Option<fn(&J) -> J>,
}

impl<J: Send + 'static, A: Send + 'static> Pool<J, A> {
    /// A pool of that many workers, at least one. `make` makes the function of each worker, and a
    /// new one when the worker has panicked.
    pub fn new<W>(workers: usize, make: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: FnMut(J) -> Result<A, BoxError> + Send + 'static,
    {
        let workers = workers.max(1);
        Self {
            label: "pool".into(),
            workers: workers..workers,
            make: Arc::new(move || Box::new(make())),
            routing: Routing::default(),
            limits: Limits::default(),
            intensity: (100, Duration::from_secs(5)),
            idle: Duration::from_secs(30),
            retries: 0,
            copy: None,
        }
    }

    /// What it is called in logs and where it prints itself.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = label.into();
        self
    }

    /// Workers are started when there are jobs for them, up to the number of [`new`](Self::new),
    /// and end when they have been idle for that long.
    #[must_use]
    pub fn lazy(mut self, idle: Duration) -> Self {
        self.workers.start = 0;
        self.idle = idle;
        self
    }

    /// How many jobs may wait, and what becomes of more. Without this all wait.
    #[must_use]
    pub fn queue(mut self, most: usize, overload: Overload) -> Self {
        (self.limits.most, self.limits.overload) = (most, overload);
        self
    }

    /// A job that has waited for so long is not begun.
    #[must_use]
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.limits.time_to_live = Some(time);
        self
    }

    /// Which worker gets a job.
    #[must_use]
    pub fn routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// A job with which its worker panics is tried again, so many times at the most.
    #[must_use]
    pub fn retries(mut self, times: u32) -> Self
    where
        J: Clone,
    {
        self.retries = times;
        self.copy = Some(J::clone);
        self
    }

    /// How many workers may panic within that time: with one more, the pool fails. By default 100
    /// within 5 seconds.
    #[must_use]
    pub fn intensity(mut self, most: u32, within: Duration) -> Self {
        self.intensity = (most, within);
        self
    }

    /// Starts the pool, from outside of any process.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub fn start(self, scheduler: &Handle) -> Result<PoolHandle<J, A>, SubmitError> {
        let workers = self.workers.clone();
        let queue = Arc::new(Queue::new(self.routing, workers.clone(), self.limits));
        let (most, within) = self.intensity;
        let settings = Arc::new(worker::Settings {
            make: Arc::clone(&self.make),
            retries: self.retries,
            copy: self.copy,
            idle: (workers.start < workers.end).then_some(self.idle),
        });
        let tree: Arc<Mutex<Option<Tree>>> = Arc::default();
        let front = {
            let (queue, settings) = (Arc::clone(&queue), Arc::clone(&settings));
            let tree = Arc::clone(&tree);
            move || Front::new(Arc::clone(&queue), Arc::clone(&settings), Arc::clone(&tree))
        };
        let mut supervisor = Supervisor::one_for_one()
            .label(self.label)
            .intensity(most, within)
            .child("front", front);
        for index in 0..workers.start {
            supervisor = supervisor.with(worker_child(&queue, &settings, index));
        }
        let handle = supervisor.start(scheduler)?;
        *lock(&tree) = Some(Tree::clone(&handle));
        let front = handle.child("front").and_then(|pid| scheduler.address(pid));
        let front = front.and_then(|it| it.typed::<Order<J, A>>().ok());
        let Some(front) = front else {
            return Err(SubmitError::new(ganger_proc_api::SubmitErrorKind::Stopping));
        };
        let remote = Remote { front, queue };
        Ok(PoolHandle {
            tree: handle,
            remote,
        })
    }
}

/// A worker as a child of the pool's supervisor.
fn worker_child<J: Send + 'static, A: Send + 'static>(
    queue: &Arc<Queue<J, A>>,
    settings: &Arc<worker::Settings<J, A>>,
    index: usize,
) -> Child {
    let (queue, settings) = (Arc::clone(queue), Arc::clone(settings));
    let is_lazy = settings.idle.is_some();
    let make = move || Worker::new(Arc::clone(&queue), Arc::clone(&settings), index);
    let child = Child::new(format!("worker {index}"), make).in_place();
    if is_lazy { child.temporary() } else { child }
}

impl<J, A> fmt::Debug for Pool<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("label", &self.label)
            .field("workers", &self.workers)
            .field("routing", &self.routing)
            .finish_non_exhaustive()
    }
}

/// Gives jobs to a pool. Cloning it is cheap.
pub struct Remote<J, A> {
    front: Address<Order<J, A>>,
    queue: Arc<Queue<J, A>>,
}

impl<J: Send + 'static, A: Send + 'static> Remote<J, A> {
    /// A job whose answer the caller waits for. A caller that leaves before the job is begun takes
    /// it along.
    ///
    /// The error is what the worker's function has returned, or a [`PoolError`].
    pub fn call(&self, job: J) -> Call<A> {
        self.front
            .call(move |reply| Order::new(job, None, Some(reply)))
    }

    /// A job for the worker of that key: always the same one.
    pub fn call_by(&self, key: impl Hash, job: J) -> Call<A> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let key = hasher.finish();
        self.front
            .call(move |reply| Order::new(job, Some(key), Some(reply)))
    }

    /// A job without an answer. Never blocks.
    ///
    /// # Errors
    /// [`SendError`] when the pool has ended. A job that is refused later is dropped and counted.
    pub fn send(&self, job: J) -> Result<(), SendError> {
        self.front.send(Order::new(job, None, None))
    }

    /// From now on workers begin no job, until [`resume`](Self::resume).
    pub fn suspend(&self) {
        self.queue.suspend(true);
    }

    /// Workers begin jobs again.
    pub fn resume(&self) {
        self.queue.suspend(false);
    }

    /// What has become of jobs, and what is being done.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.queue.stats()
    }
}

impl<J, A> Clone for Remote<J, A> {
    fn clone(&self) -> Self {
        Self {
            front: self.front.clone(),
            queue: Arc::clone(&self.queue),
        }
    }
}

impl<J, A> fmt::Debug for Remote<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.queue.stats()).finish()
    }
}

/// A pool that runs. Dropping it leaves the pool alone.
pub struct PoolHandle<J, A> {
    tree: TreeHandle,
    remote: Remote<J, A>,
}

impl<J: Send + 'static, A: Send + 'static> PoolHandle<J, A> {
    /// The supervisor with the workers.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// For those that give it jobs.
    #[must_use]
    pub fn remote(&self) -> Remote<J, A> {
        self.remote.clone()
    }

    /// From now on jobs are refused with [`PoolError::Stopping`]. When those are done that have
    /// been admitted, the pool ends. Returns at once.
    pub fn begin_stop(&self) {
        self.remote.queue.drain();
    }

    /// Has the pool stop, and waits until it has. The end is
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
    type Target = Remote<J, A>;

    fn deref(&self) -> &Remote<J, A> {
        &self.remote
    }
}

impl<J, A> fmt::Debug for PoolHandle<J, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)
    }
}
