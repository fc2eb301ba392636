//! Sets of children that may fail.
//!
//! **Problem.** The first failure of a child ends its scope. A crawler, a batch or a server wants
//! the cause instead, and goes on.
//!
//! **Rejected.** A scope tolerant of all failures: the same scope mostly has further children, and
//! a failure of these must end it. A set without a scope: its destructor can't wait, so children
//! would outlive it.
//!
//! **Protocol**
//! 1. A child leaves its result or its error with the set before it ends. The scope hears of the
//!    end, and tells the set, which puts both together.
//! 2. An end makes room: the scope starts the next waiting child of the set.
//! 3. When the scope is cancelled or over, waiting children do not start.

use super::nursery::{Member, Scope, lock};
use super::task_error::{TaskError, TaskId};
use crate::cx::Cx;
use crate::error::{is_cancelled, text};
use crate::process::process;
use ganger_proc_api::{BoxError, CancelReason, ExitCause, Pid, SubmitError};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Waker};

/// Children of a scope that may fail: a failure ends neither the other children nor the scope. See
/// [`Scope::task_set`].
///
/// Dropping the set cancels its children. The scope waits for their ends.
pub struct TaskSet<T: Send + 'static> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    scope: Scope,
    state: Mutex<State<T>>,
}

struct State<T> {
    limit: usize,
    /// The number of all children so far.
    spawned: u64,
    queue: VecDeque<(TaskId, Start<T>)>,
    running: BTreeMap<TaskId, Running<T>>,
    ended: VecDeque<(TaskId, Result<T, TaskError>)>,
    waker: Option<Waker>,
}

/// Starts a waiting child.
type Start<T> = Box<dyn FnOnce(&Arc<Inner<T>>, TaskId) -> Result<(), SubmitError> + Send>;

/// A living child.
struct Running<T> {
    /// Known after the start.
    pid: Option<Pid>,
    /// The set cancels the child as soon as its PID is known.
    is_cancelled: bool,
    /// The result left by the child.
    left: Option<Result<T, BoxError>>,
}

impl Scope {
    /// Creates a set of children that may fail: [`next`](TaskSet::next) gives the result of each
    /// child, or its failure, in the order of their ends. A failure ends neither the other children
    /// nor the scope, which waits for all of them.
    ///
    /// To wait for the end of a single process, see [`Cx::monitored`].
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let batch = scheduler.spawn(async |cx: Cx| {
    ///     cx.scope(async |scope| {
    ///         let set = scope.task_set().limit(4);
    ///         for number in 0..10_u64 {
    ///             set.spawn(async move |_| match number {
    ///                 7 => Err("no luck".into()),
    ///                 _ => Ok(number),
    ///             })?;
    ///         }
    ///         let (mut sum, mut failed) = (0, 0);
    ///         while let Some(result) = set.next().await {
    ///             match result {
    ///                 Ok(number) => sum += number,
    ///                 Err(_) => failed += 1,
    ///             }
    ///         }
    ///         Ok((sum, failed))
    ///     })
    ///     .await
    /// })?;
    /// assert_eq!(batch.wait().take::<(u64, i32)>()?, (38, 1));
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use = "dropping it cancels its children"]
    pub fn task_set<T: Send + 'static>(&self) -> TaskSet<T> {
        let state = State {
            limit: usize::MAX,
            spawned: 0,
            queue: VecDeque::new(),
            running: BTreeMap::new(),
            ended: VecDeque::new(),
            waker: None,
        };
        let inner = Inner {
            scope: self.same(),
            state: Mutex::new(state),
        };
        let inner = Arc::new(inner);
        TaskSet { inner }
    }
}

impl<T: Send + 'static> TaskSet<T> {
    /// Sets the most children that run at once, from 1 up. Further children wait in the set, and
    /// start in the order of their calls. Running children go on.
    #[must_use = "dropping it cancels its children"]
    pub fn limit(self, children: usize) -> Self {
        lock(&self.inner.state).limit = children.max(1);
        self
    }

    /// Starts a child, or has it wait until there is room. Never blocks.
    ///
    /// # Errors
    /// [`SubmitError`] when the scheduler takes no more processes, or the scope is over. A waiting
    /// child that fails to start later ends with a [`TaskError`].
    ///
    /// # Panics
    /// Outside of the task that has opened the scope.
    pub fn spawn<F, Fut>(&self, body: F) -> Result<TaskId, SubmitError>
    where
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let mut state = lock(&self.inner.state);
        let id = TaskId(state.spawned);
        state.spawned += 1;
        if state.running.len() < state.limit {
            state.running.insert(id, Running::new());
            drop(state);
            self.inner.start(id, body)?;
            return Ok(id);
        }
        let start: Start<T> = Box::new(move |inner, id| inner.start(id, body));
        state.queue.push_back((id, start));
        Ok(id)
    }

    /// Waits for the result or the failure of the next child that ends; `None` when no child is
    /// left.
    ///
    /// A cancellation of the task cancels the children, and does not end this wait: their ends come
    /// as usual. Cancel-safe.
    ///
    /// # Errors
    /// [`TaskError`], inside.
    pub async fn next(&self) -> Option<Result<T, TaskError>> {
        self.next_with_id().await.map(|(_, result)| result)
    }

    /// Waits as [`next`](Self::next) does, and returns also the id that [`spawn`](Self::spawn) has
    /// returned.
    ///
    /// # Errors
    /// [`TaskError`], inside.
    pub async fn next_with_id(&self) -> Option<(TaskId, Result<T, TaskError>)> {
        poll_fn(|context| self.inner.poll_next(context)).await
    }

    /// Asks a child to finish, as a cancellation of any process does. A waiting child does not
    /// start. [`next`](Self::next) gives its end. An ended child stays as it is. O(log n), and O(n)
    /// for a waiting child.
    #[doc(alias = "abort")]
    pub fn cancel(&self, id: TaskId) {
        let mut state = lock(&self.inner.state);
        if let Some(running) = state.running.get_mut(&id) {
            let pid = running.cancel();
            drop(state);
            self.inner.cancel(pid);
        } else if let Ok(index) = state.queue.binary_search_by_key(&id, |(id, _)| *id) {
            let waited = state.queue.remove(index);
            let waker = state.end(id, Err(TaskError::not_started(id, CANCELLED.into())));
            drop(state);
            // A body is foreign code.
            drop(waited);
            wake(waker);
        }
    }

    /// Asks all children to finish: see [`cancel`](Self::cancel).
    #[doc(alias = "abort_all")]
    pub fn cancel_all(&self) {
        self.inner.flush(&CANCELLED.into());
        let mut state = lock(&self.inner.state);
        let pids: Vec<_> = state.running.values_mut().map(Running::cancel).collect();
        drop(state);
        pids.into_iter().for_each(|pid| self.inner.cancel(pid));
    }

    /// Returns the PID of a child; `None` when the child waits for room, or has ended.
    #[must_use]
    pub fn pid(&self, id: TaskId) -> Option<Pid> {
        lock(&self.inner.state).running.get(&id)?.pid
    }

    /// Returns the number of children whose ends [`next`](Self::next) has not given.
    #[must_use]
    pub fn len(&self) -> usize {
        let state = lock(&self.inner.state);
        state.queue.len() + state.running.len() + state.ended.len()
    }

    /// Returns whether the set is empty, so that [`next`](Self::next) gives `None`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason of a set's cancellations.
const CANCELLED: &str = "its task set has cancelled it";

impl<T> Running<T> {
    fn new() -> Self {
        Self {
            pid: None,
            is_cancelled: false,
            left: None,
        }
    }

    fn cancel(&mut self) -> Option<Pid> {
        self.is_cancelled = true;
        self.pid
    }
}

impl<T> State<T> {
    /// Notes the end of a child. The caller wakes the waker without the lock.
    #[must_use]
    fn end(&mut self, id: TaskId, result: Result<T, TaskError>) -> Option<Waker> {
        self.ended.push_back((id, result));
        self.waker.take()
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl<T: Send + 'static> Inner<T> {
    /// Starts a child, which counts as running already.
    fn start<F, Fut>(self: &Arc<Self>, id: TaskId, body: F) -> Result<(), SubmitError>
    where
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let set = Arc::clone(self);
        let child = move |cx: Cx| {
            let body = body(cx);
            async move {
                let (left, end) = match body.await {
                    Ok(result) => (Ok(result), Ok(())),
                    Err(error) if is_cancelled(&error) => return Err(error),
                    Err(error) => {
                        let end = Err(text(&error).into());
                        (Err(error), end)
                    }
                };
                if let Some(running) = lock(&set.state).running.get_mut(&id) {
                    running.left = Some(left);
                }
                end
            }
        };
        let member: Arc<dyn Member> = Arc::clone(self) as _;
        let started = self.scope.start(Some((member, id.0)), |monitored| {
            process(move |cx: Cx| {
                monitored.begin(&cx);
                child(cx)
            })
        });
        let mut state = lock(&self.state);
        match started {
            Ok(pid) => {
                let running = state.running.get_mut(&id);
                let is_cancelled = running.is_some_and(|it| {
                    it.pid = Some(pid);
                    it.is_cancelled
                });
                drop(state);
                if is_cancelled {
                    self.cancel(Some(pid));
                }
                Ok(())
            }
            Err(error) => {
                let removed = state.running.remove(&id);
                drop(state);
                drop(removed);
                Err(error)
            }
        }
    }

    fn poll_next(
        &self,
        context: &task::Context<'_>,
    ) -> Poll<Option<(TaskId, Result<T, TaskError>)>> {
        // A waker is foreign code: it is cloned and dropped without the lock.
        let waker = context.waker().clone();
        let mut state = lock(&self.state);
        if let Some(ended) = state.ended.pop_front() {
            return Poll::Ready(Some(ended));
        }
        if state.running.is_empty() && state.queue.is_empty() {
            return Poll::Ready(None);
        }
        let before = state.waker.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }

    fn cancel(&self, pid: Option<Pid>) {
        if let Some(pid) = pid {
            self.scope.cancel(pid, CANCELLED);
        }
    }

    /// Ends the waiting children without a start.
    fn flush(&self, reason: &CancelReason) {
        let mut state = lock(&self.state);
        let waited = mem::take(&mut state.queue);
        let mut waker = None;
        for (id, _) in &waited {
            let error = TaskError::not_started(*id, reason.clone());
            waker = state.end(*id, Err(error)).or(waker);
        }
        drop(state);
        drop(waited);
        wake(waker);
    }

    /// Starts waiting children, as far as the limit allows.
    fn fill(self: &Arc<Self>) {
        loop {
            let mut state = lock(&self.state);
            if state.running.len() >= state.limit {
                return;
            }
            let Some((id, start)) = state.queue.pop_front() else {
                return;
            };
            state.running.insert(id, Running::new());
            drop(state);
            if let Err(error) = start(self, id) {
                let error = TaskError::refused(id, error);
                let waker = lock(&self.state).end(id, Err(error));
                wake(waker);
            }
        }
    }
}

impl<T: Send + 'static> Member for Inner<T> {
    fn ended(self: Arc<Self>, number: u64, pid: Pid, cause: ExitCause) {
        let id = TaskId(number);
        let mut state = lock(&self.state);
        let left = state.running.remove(&id).and_then(|it| it.left);
        let (result, lost) = match (left, cause) {
            (Some(Ok(result)), ExitCause::Done) => (Ok(result), None),
            (Some(Err(source)), cause) => (Err(TaskError::new(id, pid, cause, Some(source))), None),
            (lost, cause) => (Err(TaskError::new(id, pid, cause, None)), lost),
        };
        let waker = state.end(id, result);
        drop(state);
        // A result's destructor is foreign code.
        drop(lost);
        wake(waker);
        match self.scope.over() {
            Some(reason) => self.flush(&reason),
            None => self.fill(),
        }
    }
}

impl<T: Send + 'static> Drop for TaskSet<T> {
    fn drop(&mut self) {
        self.cancel_all();
    }
}

impl<T: Send + 'static> fmt::Debug for TaskSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.inner.state);
        f.debug_struct("TaskSet")
            .field("waiting", &state.queue.len())
            .field("running", &state.running.len())
            .field("ended", &state.ended.len())
            .finish()
    }
}
