//! Pools: workers that run jobs.
//!
//! **Problem.** Many callers have jobs, and few workers run them. A worker may panic, a caller may
//! leave, and the pool may stop, each at any moment.
//!
//! **Protocol.** A pool is a supervisor with a front and workers.
//!
//! 1. The queue admits a job, or refuses it, under the lock of [`Queue`]. The stop of a pool takes
//!    the same lock. So a job is either refused or completed.
//! 2. A worker without a job notes under the lock that it is idle. An admitted job wakes an idle
//!    worker.
//! 3. A worker that takes a job skips expired jobs, and jobs whose callers have left.
//! 4. A worker whose job panics answers the job, or puts it back, and then fails. Its supervisor
//!    restarts it in place, and its line stays. Until its process has ended, it holds its place.
//! 5. The front, a process, starts workers for jobs where the pool has not all of them from the
//!    start. The front was started last, so a stop asks it first. The front ends when all jobs are
//!    done.
//!
//! An inline pool has no workers: the caller runs its job, between the admission and the answer.
//!
//! **Imports**: supervisors. From the bottom up: the policy and the errors, entries, the queue, the
//! worker, inline jobs, the front, the remote, and here the pool.

mod entry;
mod error;
mod front;
mod inline;
mod policy;
mod queue;
mod remote;
mod worker;

use self::entry::Limits;
use self::error::OnRefused;
use self::front::{Front, WORKERS};
use self::inline::Inline;
use self::queue::Queue;
use self::worker::{MakeWork, Settings, worker_child};
use crate::child::ChildSpec;
use crate::plan::{BackOff, ShutdownTimeout};
use crate::supervisor::Supervisor;
use ganger_proc_api::{BoxError, SubmitError};
use ganger_sched::{ContextExt, Handle};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use self::entry::PoolStats;
pub use self::error::{PoolError, Refused};
pub use self::policy::{Overload, Routing};
pub use self::remote::{PoolHandle, PoolRemote};

/// Workers that run jobs: `J` is a job, `A` its answer.
///
/// Each worker is a process with a function of its own. The function may block: the scheduler then
/// moves the other processes of its thread to another thread.
///
/// ```
/// use ganger_proc_api::BoxError;
/// use ganger_sched::Scheduler;
/// use ganger_supervise::{Overload, Pool};
/// use std::sync::Arc;
///
/// let scheduler = Scheduler::builder().start()?;
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
    retries_errors: bool,
    back_off: BackOff,
    on_refused: Option<OnRefused<J>>,
}

impl<J: Send + 'static, A: Send + 'static> Pool<J, A> {
    /// Creates a pool of `workers` workers, from 1 up. `make` makes the function of each worker,
    /// and a new function when the worker has panicked: at once, or later when [`make`
    /// fails](Self::back_off).
    pub fn new<W>(workers: usize, make: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: FnMut(J) -> Result<A, BoxError> + Send + 'static,
    {
        let workers = workers.max(1);
        Self::of(workers..workers, make)
    }

    /// Creates a pool without workers: a job runs where it is called, in the step that asks or in
    /// the thread that waits. A step gets the answer as an event, as from other pools. Jobs may
    /// call the pool, too.
    ///
    /// `make` makes a function for each job that runs at a time. [`queue`](Self::queue) limits
    /// their number.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// use ganger_supervise::Pool;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let pool = Pool::inline(|| |word: &'static str| Ok(word.len())).start(&scheduler)?;
    /// assert_eq!(pool.call("four").wait()?, 4);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn inline<W>(make: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: FnMut(J) -> Result<A, BoxError> + Send + 'static,
    {
        Self::of(0..0, make)
    }

    fn of<W>(workers: Range<usize>, make: impl Fn() -> W + Send + Sync + 'static) -> Self
    where
        W: FnMut(J) -> Result<A, BoxError> + Send + 'static,
    {
        Self {
            label: "pool".into(),
            workers,
            make: Arc::new(move || Box::new(make())),
            routing: Routing::default(),
            limits: Limits::default(),
            intensity: (100, Duration::from_secs(5)),
            idle: Duration::from_secs(30),
            retries: 0,
            copy: None,
            retries_errors: false,
            back_off: BackOff::from(Duration::from_millis(100)).longest(Duration::from_secs(10)),
            on_refused: None,
        }
    }

    /// Sets the pool's name in logs and in printed trees.
    #[must_use]
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = label.into();
        self
    }

    /// Starts workers when jobs come, up to the number of [`new`](Self::new). A worker ends when it
    /// has been idle for `idle`.
    #[must_use]
    pub fn lazy(mut self, idle: Duration) -> Self {
        self.workers.start = 0;
        self.idle = idle;
        self
    }

    /// Makes the number of workers follow the load. At least `least` workers run. The pool starts
    /// another worker, up to the number of [`new`](Self::new), when a job has waited for `wait` and
    /// no worker is free, and the next worker after a further `wait`. A worker ends when it was
    /// idle for `idle`.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// use ganger_supervise::Pool;
    /// use std::time::Duration;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let pool = Pool::new(16, || |job: u32| Ok(job + 1))
    ///     .adaptive(2, Duration::from_millis(10), Duration::from_secs(30))
    ///     .start(&scheduler)?;
    /// assert_eq!(pool.call(1).wait()?, 2);
    /// assert_eq!(pool.stats().workers, 2);
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn adaptive(mut self, least: usize, wait: Duration, idle: Duration) -> Self {
        self.workers.start = least.max(1).min(self.workers.end);
        self.limits.patience = Some(wait);
        self.idle = idle;
        self
    }

    /// Sets the limit of waiting jobs, and the policy for further jobs. The default is no limit. A
    /// job whose caller has left does not count.
    #[must_use]
    pub fn queue(mut self, most: usize, overload: Overload) -> Self {
        (self.limits.most, self.limits.overload) = (most, overload);
        self
    }

    /// Sets the time that a job may wait without a try: then the job expires. Its caller hears of
    /// the expiry at this time, also while the pool is suspended or all workers are busy. A job
    /// that waits for a further try does not expire.
    #[must_use]
    pub fn time_to_live(mut self, time: Duration) -> Self {
        self.limits.time_to_live = Some(time);
        self
    }

    /// Sets the policy by which a job gets its worker.
    #[must_use]
    pub fn routing(mut self, routing: Routing) -> Self {
        self.routing = routing;
        self
    }

    /// Gives a job whose worker panics up to `times` further tries.
    #[must_use]
    pub fn retries(mut self, times: u32) -> Self
    where
        J: Clone,
    {
        self.retries = times;
        self.copy = Some(J::clone);
        self
    }

    /// Gives a job that ends in an error further tries as well, each after a wait.
    /// [`retries`](Self::retries) sets their number; the default is 3. After the last try the
    /// caller gets the last error.
    ///
    /// A job that waits for a try counts for the limit of the [queue](Self::queue). Workers begin
    /// other jobs meanwhile, also jobs of the same key. A pool that is stopping does not wait
    /// before a try, nor does an inline pool. The stable time of the [`BackOff`] does not count.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicU32, Ordering};
    /// use ganger_supervise::{BackOff, Pool};
    /// use std::time::Duration;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// # let calls = Arc::new(AtomicU32::new(0));
    /// # let flaky = move |_| match calls.fetch_add(1, Ordering::Relaxed) {
    /// #     0 | 1 => Err(BoxError::from("no network")),
    /// #     _ => Ok(()),
    /// # };
    /// // After 10 ms, 20 ms and so on, at the most after a second, a tenth more or less by chance.
    /// let wait = BackOff::from(Duration::from_millis(10)).longest(Duration::from_secs(1));
    /// let pool = Pool::new(4, move || flaky.clone()).retries(5).retry(wait).start(&scheduler)?;
    /// pool.call("a job").wait()?;
    /// assert_eq!(pool.stats().retried, 2);
    /// # pool.stop();
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn retry(mut self, wait: impl Into<BackOff>) -> Self
    where
        J: Clone,
    {
        if self.retries == 0 {
            self.retries = 3;
        }
        self.limits.retry = Some(wait.into());
        self.retries_errors = true;
        self.copy = Some(J::clone);
        self
    }

    /// Sets the number of priorities of jobs, from 1 up. Priority 0 is the lowest. Workers begin
    /// waiting jobs of a higher priority first, and jobs of equal priority in the order of their
    /// calls. A running job is not interrupted, and a job of a low priority may wait as long as
    /// higher priorities have jobs.
    ///
    /// A job that finds the [queue](Self::queue) full takes the place of a job with a lower
    /// priority: of the lowest, the newest job or, with [`Overload::RefuseOldest`], the oldest. A
    /// job never takes the place of a job with a higher priority.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::{Arc, Mutex};
    /// use ganger_supervise::Pool;
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// # let printed = Arc::new(Mutex::new(Vec::new()));
    /// # let lines = printed.clone();
    /// # let print = move |line: &str| Ok(lines.lock().unwrap().push(line.to_owned()));
    /// let pool = Pool::new(1, move || print.clone()).priorities(2).start(&scheduler)?;
    /// let urgent = pool.with_priority(1);
    /// pool.suspend();
    /// pool.send("report")?;
    /// urgent.send("alarm")?;
    /// pool.stop();
    /// # assert_eq!(*printed.lock().unwrap(), ["alarm", "report"]);
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn priorities(mut self, priorities: usize) -> Self {
        self.limits.priorities = priorities.max(1);
        self
    }

    /// Calls `f` with each refused or expired job and the reason, before its caller hears of it.
    /// [`PoolRemote::send`] gives a refused job back instead. `f` runs in the thread that refuses
    /// the job, and should be short.
    #[must_use]
    pub fn on_refused(mut self, f: impl Fn(J, &PoolError) + Send + Sync + 'static) -> Self {
        self.on_refused = Some(Arc::new(f));
        self
    }

    /// Sets the wait before the next call of `make`, after a panic of `make`. By default 100
    /// milliseconds, then twice as long each time, up to 10 seconds.
    ///
    /// A worker that panics with a job is replaced at once. The waits begin anew after a call of
    /// `make` that succeeds. The stable time of the [`BackOff`] does not count.
    #[must_use]
    pub fn back_off(mut self, wait: impl Into<BackOff>) -> Self {
        self.back_off = wait.into();
        self
    }

    /// Sets the most panics of workers within `within`, with jobs or in `make`: at the next panic
    /// the pool fails. By default 100 within 5 seconds.
    #[must_use]
    pub fn intensity(mut self, most: u32, within: Duration) -> Self {
        self.intensity = (most, within);
        self
    }

    /// Starts the pool from a thread outside of all processes.
    ///
    /// # Errors
    /// As for [`Supervisor::start`].
    pub fn start(self, scheduler: &Handle) -> Result<PoolHandle<J, A>, SubmitError> {
        let remote = self.remote().run_in(scheduler);
        let tree = self.supervisor(&remote).start(scheduler)?;
        Ok(PoolHandle::new(tree, remote))
    }

    /// Makes the pool a child of a supervisor, and returns a handle for callers. The handle stays
    /// valid across restarts of the pool. While the pool does not run, it refuses jobs.
    ///
    /// When the supervisor stops the pool, the pool completes its admitted jobs first. The time for
    /// this has no limit, unless the child [has one](ChildSpec::stop_within).
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// use ganger_supervise::{Pool, Supervisor};
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let (child, pool) = Pool::new(4, || |by: u32| Ok(100 / by)).into_child("division");
    /// let tree = Supervisor::one_for_one().with(child).start(&scheduler)?;
    /// assert_eq!(pool.call(7).wait()?, 14);
    /// tree.stop();
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn into_child(self, name: impl Into<Arc<str>>) -> (ChildSpec, PoolRemote<J, A>) {
        let name = name.into();
        let this = self.label(Arc::clone(&name));
        let remote = this.remote();
        let theirs = remote.clone();
        (
            ChildSpec::new(name, move || this.supervisor(&theirs)),
            remote,
        )
    }

    fn settings(&self) -> Settings<J, A> {
        Settings {
            make: Arc::clone(&self.make),
            retries: self.retries,
            copy: self.copy,
            retries_errors: self.retries_errors,
            always: self.workers.start,
            idle: self.idle,
            back_off: self.back_off,
        }
    }

    fn remote(&self) -> PoolRemote<J, A> {
        let workers = self.workers.clone();
        let on_refused = self.on_refused.clone();
        let queue = Queue::new(self.routing, workers, self.limits, on_refused);
        let inline = (self.workers.end == 0).then(|| Inline::new(self.settings()));
        PoolRemote::new(queue, inline)
    }

    /// Creates the supervisor of the pool: first the workers, and then the front.
    fn supervisor(&self, remote: &PoolRemote<J, A>) -> Supervisor {
        let queue = Arc::clone(remote.queue());
        let settings = Arc::new(self.settings());
        let theirs = Arc::clone(&queue);
        let mut supervisor = Supervisor::one_for_one()
            .label(Arc::clone(&self.label))
            .intensity(0, Duration::ZERO)
            .before_start(move |ctx| theirs.set_owner(ctx.pid(), ctx.timers().clone()));
        if self.workers.end > 0 {
            let (queue, settings) = (Arc::clone(&queue), Arc::clone(&settings));
            let (workers, (most, within)) = (self.workers.clone(), self.intensity);
            supervisor = supervisor.child(WORKERS, move || {
                let supervisor = match workers.start < workers.end {
                    // A dynamic supervisor forgets workers that have ended while idle.
                    true => Supervisor::dynamic(),
                    false => Supervisor::one_for_one(),
                };
                let children = (0..workers.start).map(|it| worker_child(&queue, &settings, it));
                let supervisor = supervisor.label(WORKERS).intensity(most, within);
                children.fold(supervisor, Supervisor::with)
            });
        }
        let view = supervisor.view();
        let front = move || {
            let (queue, settings) = (Arc::clone(&queue), Arc::clone(&settings));
            Front::new(queue, settings, Arc::clone(&view))
        };
        supervisor.with(ChildSpec::new("front", front).stop(ShutdownTimeout::Unlimited))
    }
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
