//! Children whose results go to the body of their scope.

use super::nursery::{Scope, lock};
use crate::cx::Cx;
use crate::error::{ChildLost, is_cancelled, text};
use crate::process::process;
use ganger_proc_api::{BoxError, Pid, SubmitError};
use ganger_wait::watch::{self, Asked, END};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{self, Poll, Waker};

/// Children of a scope, with results in the order of their ends: see [`Scope::group`].
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
    /// The number of children whose start has begun.
    begun: u64,
    waker: Option<Waker>,
}

impl<T: Send + 'static> Group<T> {
    pub(crate) fn new(scope: Scope) -> Self {
        let results = Results {
            ready: VecDeque::new(),
            running: 0,
            begun: 0,
            waker: None,
        };
        let results = Arc::new(Mutex::new(results));
        Self { scope, results }
    }

    /// Starts a child as [`Scope::spawn`] does, but its result goes to [`next`](Self::next).
    ///
    /// # Errors
    /// The errors of [`Scope::spawn`].
    ///
    /// # Panics
    /// The panics of [`Scope::spawn`].
    pub fn spawn<F, Fut>(&self, body: F) -> Result<Pid, SubmitError>
    where
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let begun = lock(&self.results).begun;
        let results = Arc::clone(&self.results);
        let first_error = self.scope.first_error();
        let child = move |cx: Cx| {
            let pid = cx.pid();
            let report = Report::new(results);
            let body = body(cx);
            async move {
                match body.await {
                    Ok(result) => report.give(Ok(result)),
                    Err(error) if is_cancelled(&error) => return Err(error),
                    Err(error) => {
                        let text = text(&error);
                        first_error.keep(pid, error);
                        return Err(text.into());
                    }
                }
                Ok(())
            }
        };
        let started = self.scope.start(None, |monitored| {
            process(move |cx: Cx| {
                monitored.begin(&cx);
                child(cx)
            })
        });
        if started.is_err() {
            let mut results = lock(&self.results);
            if results.begun != begun {
                // The child was dropped during its start, and no wait learns of it.
                let lost = results.ready.iter().rposition(Result::is_err);
                drop(lost.and_then(|lost| results.ready.remove(lost)));
            }
        }
        started
    }

    /// Waits for the next result; `None` when all results have been taken. A child that ends
    /// without a result gives [`ChildLost`], and ends the scope.
    ///
    /// # Errors
    /// [`ChildLost`], inside.
    pub async fn next(&self) -> Option<Result<T, ChildLost>> {
        poll_fn(|context| poll_next(&self.results, context)).await
    }

    /// Returns the number of children without a result yet.
    #[must_use]
    pub fn running(&self) -> usize {
        lock(&self.results).running
    }
}

fn poll_next<T>(
    results: &Mutex<Results<T>>,
    context: &task::Context<'_>,
) -> Poll<Option<Result<T, ChildLost>>> {
    // A waker is foreign code: it is cloned and dropped without the lock.
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

/// A child of a scope, and the wait for its result. Dropping the wait leaves the child alone.
#[must_use = "the scope waits for the child, and its result is lost"]
pub struct ScopedTask<T> {
    pid: Pid,
    results: Group<T>,
    /// The wait as watchers know it, from its first poll on.
    asked: Asked,
}

impl<T> ScopedTask<T> {
    pub(crate) fn new(pid: Pid, results: Group<T>) -> Self {
        let asked = Asked::default();
        Self {
            pid,
            results,
            asked,
        }
    }

    /// Returns the child's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

/// # Panics
/// Polling it again after it was ready panics.
impl<T> Future for ScopedTask<T> {
    type Output = Result<T, ChildLost>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let polled = poll_next(&this.results.results, context).map(|result| match result {
            Some(result) => result,
            None => panic!("the result has been taken: a future is polled until it is ready"),
        });
        if polled.is_ready() {
            this.asked = Asked::default();
        } else if watch::is_on() {
            // The wait of an earlier poll may have been left.
            this.asked = watch::awaits_beside(END, this.pid);
        }
        polled
    }
}

impl Scope {
    /// Starts a child: a task of its own, whose result the [`ScopedTask`] waits for.
    ///
    /// # Errors
    /// [`SubmitError`] when the scheduler takes no more processes, or the scope has ended.
    ///
    /// # Panics
    /// Outside of the task that has opened the scope.
    pub fn spawn<T, F, Fut>(&self, body: F) -> Result<ScopedTask<T>, SubmitError>
    where
        T: Send + 'static,
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        let results = self.group();
        let pid = results.spawn(body)?;
        Ok(ScopedTask::new(pid, results))
    }

    /// Creates a group of children with results of the same type.
    #[must_use]
    pub fn group<T: Send + 'static>(&self) -> Group<T> {
        Group::new(self.same())
    }
}

/// The duty to give a child's result, or to report its loss.
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
            // A waker is foreign code.
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

impl<T> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = lock(&self.results).running;
        f.debug_struct("Group").field("running", &running).finish()
    }
}

impl<T> fmt::Debug for ScopedTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScopedTask").field(&self.pid).finish()
    }
}
