//! The scope of a task's children, which waits for all of them.
//!
//! **Problem.** A task splits its work over processes. When it fails, is cancelled or is dropped,
//! these must not go on unseen.
//!
//! **Rejected.** Children that borrow from the scope: a forgotten scope would leave them dangling
//! references. Children own their values.
//!
//! **Protocol**
//! 1. The scope monitors each child. The notices go into a line of the scope in the task's table,
//!    so the scope learns of each end in O(1).
//! 2. A child gives its result straight to its [`ScopedTask`](crate::ScopedTask) or
//!    [`Group`](crate::Group), and its error to the scope: before it ends, so before its notice.
//! 3. When a child has not finished by itself, the scope drops its body, cancels the other
//!    children, and waits for their notices.
//! 4. A dropped scope cancels its children.

use crate::cx::Cx;
use crate::error::{ChildError, ChildLost, WaitError, has_source};
use crate::process::METHOD;
use crate::step;
use ganger_proc_api::{
    BoxError, CancelReason, Context, ExitCause, Payloads, Pid, Process, SubmitError,
    SubmitErrorKind, Tag,
};
use ganger_wait::watch::{self, Asked, END};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll, ready};

/// Starts the children of a scope: see [`Cx::scope`].
///
/// A scope works only in the task that has opened it.
pub struct Scope {
    ctx: Context,
    task: u64,
    line: Tag,
    family: Arc<Mutex<Family>>,
}

/// The state that a scope and its children share.
#[derive(Default)]
struct Family {
    /// The living children, by their numbers.
    children: Vec<Option<Alive>>,
    /// The free numbers.
    free: Vec<usize>,
    alive: usize,
    /// The first error, and its child.
    error: Option<(Pid, BoxError)>,
    /// The children have been cancelled, and later children will be.
    is_cancelled: bool,
    /// The scope takes no more children.
    is_closed: bool,
}

struct Alive {
    pid: Pid,
    /// The listener for its end, in place of the scope.
    member: Option<(Arc<dyn Member>, u64)>,
}

/// A listener for the ends of children, in place of the scope.
pub(crate) trait Member: Send + Sync {
    /// Hears that the child of this number has ended. Called in the task's step, or at the drop of
    /// the scope.
    fn ended(self: Arc<Self>, number: u64, pid: Pid, cause: ExitCause);
}

impl Family {
    /// Reserves a number for a child.
    fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.children.push(None);
            self.children.len() - 1
        })
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Send + 'static> Cx<M> {
    /// Calls `body` with a [`Scope`], in which it starts children. Waits for the body and for all
    /// children: no child outlives the scope.
    ///
    /// The first child that does not finish by itself ends the scope with a [`ChildError`]: the
    /// scope drops the body, cancels the other children, and waits for their ends. An error of the
    /// body does the same. A cancellation of the task cancels the children as well, and so does the
    /// drop of the scope, which does not wait. The scope waits for cancelled children as long as
    /// they go on.
    ///
    /// ```
    /// # use ganger_proc_api::ExitReason;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let sum = scheduler.spawn(async |cx: Cx| {
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
    /// The error of the body, [`ChildError`], or [`WaitError::Cancelled`] when a cancellation of
    /// the task has ended a child.
    pub async fn scope<R, F, Fut>(&self, body: F) -> Result<R, BoxError>
    where
        F: FnOnce(Scope) -> Fut,
        Fut: Future<Output = Result<R, BoxError>>,
    {
        let mut nursery = Nursery::open(self.context(), self.task());
        let mut cancelled = pin!(self.cancelled());
        let mut result = {
            let mut body = pin!(body(nursery.scope.same()));
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
        let mut asked = Vec::new();
        poll_fn(|context| {
            nursery.heed(cancelled.as_mut(), context);
            loop {
                if result.is_err() {
                    nursery.cancel();
                }
                let ended = match nursery.poll_ended(context) {
                    Poll::Ready(Some(ended)) => ended,
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => {
                        nursery.let_watchers_know(&mut asked);
                        return Poll::Pending;
                    }
                };
                // The child's own error says more than its loss.
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

/// A scope from the side of its task. Dropping the nursery cancels the children.
struct Nursery {
    scope: Scope,
    /// The reason of the task's cancellation, once the scope knows it.
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

    /// Lets watchers know the children that the end of the scope waits for, the first
    /// [`MOST_KNOWN`] of them.
    fn let_watchers_know(&self, asked: &mut Vec<Asked>) {
        asked.clear();
        if watch::is_on() {
            let family = lock(&self.scope.family);
            let alive = family.children.iter().flatten().take(MOST_KNOWN);
            let children: Vec<_> = alive.map(|it| it.pid).collect();
            drop(family);
            let wait = |pid| watch::awaits_beside(END, pid);
            asked.extend(children.into_iter().map(wait));
        }
    }

    /// Polls the next end of the scope's own children; `None` without any living child.
    fn poll_ended(&self, context: &task::Context<'_>) -> Poll<Option<(Pid, ExitCause)>> {
        loop {
            let Some((alive, cause)) = ready!(self.poll_any(context)) else {
                return Poll::Ready(None);
            };
            match alive.member {
                Some((member, number)) => member.ended(number, alive.pid, cause),
                None => return Poll::Ready(Some((alive.pid, cause))),
            }
        }
    }

    fn poll_any(&self, context: &task::Context<'_>) -> Poll<Option<(Alive, ExitCause)>> {
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
        let alive = family.children[number].take();
        Poll::Ready(alive.map(|it| (it, cause)))
    }

    /// Returns the error for a child that has not finished by itself.
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

    /// Cancels the present and the future children. Once is enough.
    fn cancel(&self) {
        let mut family = lock(&self.scope.family);
        if mem::replace(&mut family.is_cancelled, true) {
            return;
        }
        let alive = family.children.iter().flatten();
        let children: Vec<_> = alive.map(|it| it.pid).collect();
        drop(family);
        let scope = &self.scope;
        children.into_iter().for_each(|pid| scope.cancel(pid, OVER));
    }
}

impl Drop for Nursery {
    fn drop(&mut self) {
        lock(&self.scope.family).is_closed = true;
        self.cancel();
        step::with(self.scope.task, |step| {
            step.waits.close(self.scope.line, step.events)
        });
        // No further notice comes, and the children must not keep the family.
        let children = mem::take(&mut lock(&self.scope.family).children);
        for alive in children.into_iter().flatten() {
            if let Some((member, number)) = alive.member {
                let cause = ExitCause::Cancelled(OVER.into());
                member.ended(number, alive.pid, cause);
            }
        }
    }
}

/// The most children of an ending scope that watchers know.
const MOST_KNOWN: usize = 16;

/// Why children of a scope are cancelled.
const OVER: &str = "its scope has ended";

/// The parent's duty to monitor its child before any worker runs the child, so that no end goes
/// unseen.
pub(crate) struct Monitored {
    parent: Context,
    tag: Tag,
}

impl Monitored {
    /// Monitors the child, which has its PID.
    pub(crate) fn begin(&self, child: &Cx) {
        if self.parent.monitor(child.pid(), self.tag).is_err() {
            unreachable!("a child is a process of the same scheduler");
        }
    }
}

/// The place for the first error of a child, for the scope.
pub(crate) struct FirstError(Arc<Mutex<Family>>);

impl FirstError {
    /// Keeps the error with which the child is about to end.
    pub(crate) fn keep(self, child: Pid, error: BoxError) {
        let mut family = lock(&self.0);
        let later = match family.error {
            Some(_) => Some(error),
            None => family.error.replace((child, error)).map(|(_, it)| it),
        };
        // An error's destructor is foreign code.
        drop(family);
        drop(later);
    }
}

impl Scope {
    pub(crate) fn first_error(&self) -> FirstError {
        FirstError(Arc::clone(&self.family))
    }

    pub(crate) fn cancel(&self, pid: Pid, reason: &str) {
        // An ended child is not found.
        let _ = self.ctx.cancel(pid, reason);
    }

    pub(crate) fn same(&self) -> Self {
        Self {
            ctx: self.ctx.clone(),
            family: Arc::clone(&self.family),
            ..*self
        }
    }

    /// Returns the reason why no further child may start, if so.
    pub(crate) fn over(&self) -> Option<CancelReason> {
        let family = lock(&self.family);
        (family.is_cancelled || family.is_closed).then(|| OVER.into())
    }

    /// Starts a child, made by `child`. Its end goes to `member`, if any.
    pub(crate) fn start(
        &self,
        member: Option<(Arc<dyn Member>, u64)>,
        child: impl FnOnce(Monitored) -> Box<dyn Process>,
    ) -> Result<Pid, SubmitError> {
        let Self {
            ctx,
            task,
            line,
            family,
        } = self;
        let number = lock(family).reserve();
        let tag = step::poll_with(*task, |step| step.waits.open_child(*line, number));
        let parent = ctx.clone();
        let child = child(Monitored { parent, tag });
        let started = if lock(family).is_closed {
            let error = SubmitError::new(SubmitErrorKind::Stopping);
            Err(error.with_process(child, Payloads::new()))
        } else {
            ctx.submit(child, METHOD, ())
        };
        let pid = match started {
            Ok(pid) => pid,
            Err(error) => {
                step::with(*task, |step| step.waits.close(tag, step.events));
                lock(family).free.push(number);
                return Err(error);
            }
        };
        step::with(*task, |step| step.waits.child_is(tag, pid));
        let mut shared = lock(family);
        shared.children[number] = Some(Alive { pid, member });
        shared.alive += 1;
        let is_cancelled = shared.is_cancelled;
        drop(shared);
        if is_cancelled {
            self.cancel(pid, OVER);
        }
        Ok(pid)
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alive = lock(&self.family).alive;
        f.debug_struct("Scope").field("alive", &alive).finish()
    }
}
