//! Children that do not outlive the part of a task that has started them.
//!
//! **Problem.** A task splits its work over processes. When it fails, is cancelled or is dropped,
//! these must not go on unseen.
//!
//! **Rejected.** Children that borrow from the scope: a scope that is forgotten would leave them
//! with what is gone. Children own what they have.
//!
//! **Protocol**
//! 1. The scope monitors each child. The notices go into a line of the scope in the task's table,
//!    so that it learns of each end in O(1).
//! 2. A child's result goes straight to its [`Child`] or [`Group`], and its error to the scope. The
//!    child does that before it ends, so before its notice.
//! 3. At the first child that has not finished by itself, the scope drops its body, cancels the
//!    other children, and waits for their notices.
//! 4. A scope that is dropped cancels its children.

use crate::cx::Cx;
use crate::error::{ChildError, ChildLost, has_source, is_cancelled, text};
use crate::step;
use crate::{WaitError, process};
use ganger_proc_api::{
    BoxError, CancelReason, Context, ExitCause, Payloads, Pid, SubmitError, SubmitErrorKind,
    Symbol, Tag,
};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll, Waker};

/// The entry point that tasks are started with.
pub(crate) const METHOD: Symbol = Symbol::new("task");

/// Starts the children of a scope: see [`Cx::scope`].
///
/// It works in the task alone that has opened the scope.
pub struct Scope {
    ctx: Context,
    task: u64,
    line: Tag,
    family: Arc<Mutex<Family>>,
}

/// What a scope and its children share.
#[derive(Default)]
struct Family {
    /// Those that have not ended, by their numbers.
    children: Vec<Option<Pid>>,
    /// The numbers of those that have.
    free: Vec<usize>,
    alive: usize,
    /// The first error, and the child that has ended with it.
    error: Option<(Pid, BoxError)>,
    /// The children have been cancelled, and later ones are.
    is_cancelled: bool,
    /// The scope takes no more children.
    is_closed: bool,
}

impl Family {
    /// A number for a child.
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Send + 'static> Cx<M> {
    /// Calls `body` with a [`Scope`], in which it starts children, and waits for it and for all of
    /// these. None of them outlives the scope.
    ///
    /// The first child that does not finish by itself ends the scope with a [`ChildError`]: the
    /// body is dropped, and the other children are cancelled and waited for. So they are when the
    /// body returns an error. They are cancelled as well when the task is asked to finish, and when
    /// the scope is dropped, which waits for none. Children that go on after a cancellation are
    /// waited for as long as they do.
    ///
    /// ```
    /// # use ganger_proc_api::ExitReason;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, SpawnTask};
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let sum = scheduler.spawn_task(async |cx: Cx| {
    ///     cx.scope(async |scope| {
    ///         let one = scope.spawn(async |_: Cx| Ok(1))?;
    ///         let two = scope.spawn(async |_: Cx| Ok(2))?;
    ///         Ok(one.await? + two.await?)
    ///     })
    ///     .await
    /// })?;
    /// assert!(matches!(sum.wait(), ExitReason::Done(it) if it.as_i64() == Some(3)));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The error of the body, [`ChildError`], or [`WaitError::Cancelled`] when the task was asked
    /// to finish and a child has ended therefore.
    pub async fn scope<R, F, Fut>(&self, body: F) -> Result<R, BoxError>
    where
        F: FnOnce(Scope) -> Fut,
        Fut: Future<Output = Result<R, BoxError>>,
    {
        let mut nursery = Nursery::open(self.context(), self.task());
        let mut cancelled = pin!(self.cancelled());
        let mut result = {
            let mut body = pin!(body(nursery.scope()));
            poll_fn(|context| {
                nursery.heed(cancelled.as_mut(), context);
                while let Poll::Ready(Some(ended)) = nursery.poll_ended(context) {
                    if let Some(error) = nursery.failure(ended) {
                        return Poll::Ready(Err(error));
                    }
                }
                body.as_mut().poll(context)
            })
            .await
        };
        lock(&nursery.scope.family).is_closed = true;
        poll_fn(|context| {
            nursery.heed(cancelled.as_mut(), context);
            loop {
                if result.is_err() {
                    nursery.cancel();
                }
                let ended = match nursery.poll_ended(context) {
                    Poll::Ready(Some(ended)) => ended,
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                };
                // The child's own error says more than that it is lost.
                let is_open = match &result {
                    Ok(_) => true,
                    Err(error) => has_source(error, |it| it.is::<ChildLost>()),
                };
                if is_open && let Some(error) = nursery.failure(ended) {
                    result = Err(error);
                }
            }
        })
        .await;
        result
    }
}

/// A scope from the side of the task that has opened it. Dropping it cancels the children.
struct Nursery {
    scope: Scope,
    /// Why the task is asked to finish, once the scope knows that.
    cancel: Option<CancelReason>,
}

impl Nursery {
    fn open(ctx: &Context, task: u64) -> Self {
        let line = step::poll_with(task, |step| step.waits.open_line());
        let scope = Scope {
            ctx: ctx.clone(),
            task,
            line,
            family: Arc::default(),
        };
        let cancel = None;
        Self { scope, cancel }
    }

    /// Cancels the children when the task is asked to finish.
    fn heed(
        &mut self,
        cancelled: Pin<&mut impl Future<Output = CancelReason>>,
        context: &mut task::Context<'_>,
    ) {
        if self.cancel.is_none()
            && let Poll::Ready(reason) = cancelled.poll(context)
        {
            self.cancel = Some(reason);
            self.cancel();
        }
    }

    fn scope(&self) -> Scope {
        Scope {
            ctx: self.scope.ctx.clone(),
            family: Arc::clone(&self.scope.family),
            ..self.scope
        }
    }

    /// The next child that has ended; `None` when there are none.
    fn poll_ended(&self, context: &task::Context<'_>) -> Poll<Option<(Pid, ExitCause)>> {
        let Scope {
            task, line, family, ..
        } = &self.scope;
        if lock(family).alive == 0 {
            return Poll::Ready(None);
        }
        let ended = step::poll_with(*task, |step| {
            let waker = step.foreign(context.waker());
            step.waits.next_ended(*line, waker)
        });
        let Some((number, cause)) = ended else {
            return Poll::Pending;
        };
        let mut family = lock(family);
        family.alive -= 1;
        family.free.push(number);
        let pid = family.children[number].take();
        Poll::Ready(pid.map(|pid| (pid, cause)))
    }

    /// The error for a child that has not finished by itself.
    fn failure(&self, (pid, cause): (Pid, ExitCause)) -> Option<BoxError> {
        if cause.is_done() {
            return None;
        }
        if let Some(reason) = &self.cancel {
            return Some(WaitError::Cancelled(reason.clone()).into());
        }
        let source = lock(&self.scope.family).error.take_if(|(of, _)| *of == pid);
        let source = source.map(|(_, error)| error);
        Some(Box::new(ChildError { pid, cause, source }))
    }

    /// Cancels the children, those that are yet to come included. Once is enough.
    fn cancel(&self) {
        let mut family = lock(&self.scope.family);
        if mem::replace(&mut family.is_cancelled, true) {
            return;
        }
        let children: Vec<_> = family.children.iter().flatten().copied().collect();
        drop(family);
        children.into_iter().for_each(|pid| self.scope.cancel(pid));
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        lock(&self.scope.family).is_closed = true;
        self.cancel();
        step::with(self.scope.task, |step| step.waits.close(self.scope.line));
    }
}

impl Scope {
    fn cancel(&self, pid: Pid) {
        // One that is not found has ended.
        let _ = self.ctx.cancel(pid, "its scope has ended");
    }

    /// Starts a child: a task of its own, whose result the [`Child`] waits for.
    ///
    /// # Errors
    /// [`SubmitError`] when the scheduler takes no more processes, or the scope has ended.
    ///
    /// # Panics
    /// Outside of the task that has opened the scope.
    pub fn spawn<T, F, Fut>(&self, body: F) -> Result<Child<T>, SubmitError>
    where
        T: Send + 'static,
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let results = self.group();
        let pid = results.spawn(body)?;
        Ok(Child { pid, results })
    }

    /// Children with results of one type, which are taken as they come.
    #[must_use]
    pub fn group<T: Send + 'static>(&self) -> Group<T> {
        Group {
            scope: Self {
                ctx: self.ctx.clone(),
                family: Arc::clone(&self.family),
                ..*self
            },
            results: Arc::new(Mutex::new(Results {
                ready: VecDeque::new(),
                running: 0,
                begun: 0,
                waker: None,
            })),
        }
    }
}

/// Children of a scope, whose results are taken in the order in which they come: see
/// [`Scope::group`].
///
/// ```
/// # use ganger_proc_api::BoxError;
/// # use ganger_task::Cx;
/// # async fn body(cx: Cx) -> Result<(), BoxError> {
/// let sum: u64 = cx
///     .scope(async |scope| {
///         let squares = scope.group();
///         for number in 1..=10 {
///             squares.spawn(async move |_: Cx| Ok(number * number))?;
///         }
///         let mut sum = 0;
///         while let Some(square) = squares.next().await {
///             sum += square?;
///         }
///         Ok(sum)
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct Group<T> {
    scope: Scope,
    results: Arc<Mutex<Results<T>>>,
}

struct Results<T> {
    ready: VecDeque<Result<T, ChildLost>>,
    running: usize,
    /// Children that have begun to start.
    begun: u64,
    waker: Option<Waker>,
}

impl<T: Send + 'static> Group<T> {
    /// Starts a child. As [`Scope::spawn`], but its result goes to [`next`](Self::next).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn spawn<F, Fut>(&self, body: F) -> Result<Pid, SubmitError>
    where
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let Scope {
            ctx,
            task,
            line,
            family,
        } = &self.scope;
        let begun = lock(&self.results).begun;
        let results = Arc::clone(&self.results);
        let its_family = Arc::clone(family);
        let number = lock(family).reserve();
        let tag = step::poll_with(*task, |step| step.waits.open_child(*line, number));
        let parent = ctx.clone();
        // This is called before any worker runs the child, so that none ends it unseen.
        let child = process(move |cx: Cx| {
            let pid = cx.pid();
            if parent.monitor(pid, tag).is_err() {
                unreachable!("a child is a process of the same scheduler");
            }
            let report = Report::new(results);
            let body = body(cx);
            async move {
                match body.await {
                    Ok(result) => report.give(Ok(result)),
                    Err(error) if is_cancelled(&error) => return Err(error),
                    Err(error) => {
                        let text = text(&error);
                        let mut family = lock(&its_family);
                        let later = match family.error {
                            Some(_) => Some(error),
                            None => family.error.replace((pid, error)).map(|(_, it)| it),
                        };
                        // An error's destructor is another's code.
                        drop(family);
                        drop(later);
                        return Err(text.into());
                    }
                }
                Ok(())
            }
        });
        let started = if lock(family).is_closed {
            let error = SubmitError::new(SubmitErrorKind::Stopping);
            Err(error.with_process(child, Payloads::new()))
        } else {
            ctx.submit_boxed(child, METHOD, Payloads::new())
        };
        let pid = match started {
            Ok(pid) => pid,
            Err(error) => {
                step::with(*task, |step| step.waits.close(tag));
                lock(family).free.push(number);
                let mut results = lock(&self.results);
                if results.begun != begun {
                    // It was dropped as it started, and no wait learns of that.
                    let lost = results.ready.iter().rposition(Result::is_err);
                    drop(lost.and_then(|lost| results.ready.remove(lost)));
                }
                return Err(error);
            }
        };
        step::with(*task, |step| step.waits.child_is(tag, pid));
        let mut shared = lock(family);
        shared.children[number] = Some(pid);
        shared.alive += 1;
        let is_cancelled = shared.is_cancelled;
        drop(shared);
        if is_cancelled {
            self.scope.cancel(pid);
        }
        Ok(pid)
    }

    /// The next result; `None` when no child runs whose result has not been taken. One that has
    /// ended without a result gives [`ChildLost`], and ends the scope.
    ///
    /// # Errors
    /// [`ChildLost`], inside.
    pub async fn next(&self) -> Option<Result<T, ChildLost>> {
        poll_fn(|context| poll_next(&self.results, context)).await
    }

    /// How many children have not given their results.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.results).running
    }
}

fn poll_next<T>(
    results: &Mutex<Results<T>>,
    context: &task::Context<'_>,
) -> Poll<Option<Result<T, ChildLost>>> {
    // A waker is another's code: it is cloned and dropped without the lock.
    let waker = context.waker().clone();
    let mut results = lock(results);
    if let Some(result) = results.ready.pop_front() {
        return Poll::Ready(Some(result));
    }
    if results.running == 0 {
        return Poll::Ready(None);
    }
    let before = results.waker.replace(waker);
    drop(results);
    drop(before);
    Poll::Pending
}

/// A child of a scope. It waits for the child's result; dropping it leaves the child alone.
#[must_use = "the scope waits for the child, and its result is lost"]
pub struct Child<T> {
    pid: Pid,
    results: Group<T>,
}

impl<T> Child<T> {
    /// The child's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

/// # Panics
/// Polling it again after it was ready panics.
impl<T> Future for Child<T> {
    type Output = Result<T, ChildLost>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        poll_next(&self.results.results, context).map(|result| match result {
            Some(result) => result,
            None => panic!("the result has been taken: a future is polled until it is ready"),
        })
    }
}

/// The duty to give a child's result, or to say that there is none.
struct Report<T>(Option<Arc<Mutex<Results<T>>>>);

impl<T> Report<T> {
    fn new(results: Arc<Mutex<Results<T>>>) -> Self {
        let mut inner = lock(&results);
        inner.running += 1;
        inner.begun += 1;
        drop(inner);
        Self(Some(results))
    }

    fn give(mut self, result: Result<T, ChildLost>) {
        self.settle(result);
    }

    fn settle(&mut self, result: Result<T, ChildLost>) {
        if let Some(results) = self.0.take() {
            let mut results = lock(&results);
            results.running -= 1;
            results.ready.push_back(result);
            let waker = results.waker.take();
            // A waker is another's code.
            drop(results);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Report<T> {
    fn drop(&mut self) {
        self.settle(Err(ChildLost));
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alive = lock(&self.family).alive;
        f.debug_struct("Scope").field("alive", &alive).finish()
    }
}

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = lock(&self.results).running;
        f.debug_struct("Group").field("running", &running).finish()
    }
}

impl<T> fmt::Debug for Child<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Child").field(&self.pid).finish()
    }
}
