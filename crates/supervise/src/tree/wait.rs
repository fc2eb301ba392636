//! Waits at a tree: until a child is up, until something changes, until the end.
//!
//! **Protocol.** A view counts its own changes and the changes of the views below. A wait looks.
//! Without a result it leaves its waker at the view of its supervisor, and looks again. Each change
//! takes the wakers away and wakes them, without a lock, so each wait has at most a single place
//! there.
//!
//! **Why no wake-up is lost.** The supervisor makes a change, then counts it, then takes the
//! wakers. If it takes the wakers before a wait leaves its waker, the second look of the wait sees
//! the change.

use super::error::{AddressError, TreeEnded, TreeError};
use super::handle::Tree;
use crate::view::{ChildInfo, ChildState, Seat, Up};
use ganger_proc_api::{Command, CommandError, Pid, TypedCommand};
use ganger_sched::internal::may_block;
use ganger_wait::{Until, block_on, block_on_for};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A wait at a [`Tree`], which does nothing by itself: a thread calls [`wait`](Self::wait), a task
/// awaits it, and a step asks with `out.ask(wait, tag)`.
///
/// Dropping a wait leaves nothing behind.
#[must_use = "call `wait`, `.await` it, or `out.ask(wait, tag)`"]
pub struct TreeWait<T> {
    tree: Tree,
    look: Look<T>,
    /// The wait's place among the watchers of the view.
    seat: Seat,
}

type Look<T> = Box<dyn FnMut(&Tree) -> Option<Result<T, TreeError>> + Send>;

impl<T> TreeWait<T> {
    fn new(
        tree: &Tree,
        look: impl FnMut(&Tree) -> Option<Result<T, TreeError>> + Send + 'static,
    ) -> Self {
        Self {
            tree: tree.clone(),
            look: Box::new(look),
            seat: Seat::default(),
        }
    }

    /// Blocks this thread until the wait is over.
    ///
    /// # Errors
    /// [`TreeError`]: [`OnWorker`](TreeError::OnWorker) in a step, and
    /// [`NotStarted`](TreeError::NotStarted) where the scheduler does not run.
    #[track_caller]
    pub fn wait(self) -> Result<T, TreeError> {
        self.wait_within(None)
    }

    /// Waits as [`wait`](Self::wait) does, for at most `timeout`: also at a scheduler that has not
    /// been started, because another thread may start it.
    ///
    /// # Errors
    /// [`TreeError`]: [`OnWorker`](TreeError::OnWorker) in a step, and
    /// [`Timeout`](TreeError::Timeout) after `timeout`.
    #[track_caller]
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, TreeError> {
        self.wait_within(Some(timeout))
    }

    #[track_caller]
    fn wait_within(mut self, timeout: Option<Duration>) -> Result<T, TreeError> {
        if let Some(result) = (self.look)(&self.tree) {
            return result;
        }
        if !may_block("a wait at a tree", "its `.await` in a task") {
            return Err(TreeError::OnWorker);
        }
        let Some(timeout) = timeout else {
            let scheduler = self.tree.scheduler.upgrade();
            if scheduler.is_some_and(|it| !it.is_started() && !it.is_stopping()) {
                return Err(TreeError::NotStarted);
            }
            return block_on(self);
        };
        block_on_for(timeout, self).unwrap_or(Err(TreeError::Timeout))
    }
}

impl<T> Future for TreeWait<T> {
    type Output = Result<T, TreeError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Some(result) = (this.look)(&this.tree) {
            return Poll::Ready(result);
        }
        this.tree.view.watch(&mut this.seat, context.waker());
        (this.look)(&this.tree).map_or(Poll::Pending, Poll::Ready)
    }
}

impl<T> Drop for TreeWait<T> {
    fn drop(&mut self) {
        self.tree.view.leave(&mut self.seat);
    }
}

/// For steps: the completion brings the result. An error is [`CommandError::Failed`], with a
/// [`TreeError`] inside.
impl<T: Send + 'static> TypedCommand for TreeWait<T> {
    type Answer = T;

    fn into_command(self) -> Command {
        let wait = async { self.await.map_err(|it| CommandError::Failed(it.into())) };
        Until::fallible(wait).into_command()
    }
}

impl<T> fmt::Debug for TreeWait<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TreeWait").field(&self.tree.pid()).finish()
    }
}

/// The changes of a tree, one after the other: see [`Tree::changes`].
pub struct Changes {
    tree: Tree,
    /// The count of changes at the last look.
    seen: u64,
}

impl Changes {
    /// Waits until something has changed since the last look, and returns the present children, as
    /// [`Tree::children`] does. Cancel-safe: no change is lost.
    ///
    /// # Errors
    /// [`TreeError::Ended`] when the supervisor has ended, and its last change has been seen.
    pub async fn next(&mut self) -> Result<Vec<ChildInfo>, TreeError> {
        let (seen, children) = self.newer().await?;
        self.seen = seen;
        Ok(children)
    }

    /// Waits as [`next`](Self::next) does, and blocks the thread meanwhile.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next) and of [`TreeWait::wait`].
    #[track_caller]
    pub fn next_blocking(&mut self) -> Result<Vec<ChildInfo>, TreeError> {
        let (seen, children) = self.newer().wait()?;
        self.seen = seen;
        Ok(children)
    }

    /// Waits as [`next_blocking`](Self::next_blocking) does, for at most `timeout`.
    ///
    /// # Errors
    /// The errors of [`next`](Self::next) and of [`TreeWait::wait_timeout`].
    #[track_caller]
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Vec<ChildInfo>, TreeError> {
        let (seen, children) = self.newer().wait_timeout(timeout)?;
        self.seen = seen;
        Ok(children)
    }

    fn newer(&self) -> TreeWait<(u64, Vec<ChildInfo>)> {
        let seen = self.seen;
        TreeWait::new(&self.tree, move |tree| {
            // The end first: after it no change is missed. The count before the children: the
            // children are at least as new as the count.
            let end = tree.end();
            let version = tree.view.version();
            if version > seen {
                return Some(Ok((version, tree.children())));
            }
            end.map(|it| Err(it.into()))
        })
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changes").field(&self.tree.pid()).finish()
    }
}

impl Tree {
    /// Returns whether the supervisor has ended. After a termination or a failure its children may
    /// still be stopping.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.end().is_some()
    }

    /// Waits until the supervisor has ended, and says how. The owner of a [`TreeHandle`] gets the
    /// reason itself, by [`TreeHandle::wait`].
    ///
    /// [`TreeHandle`]: crate::TreeHandle
    /// [`TreeHandle::wait`]: crate::TreeHandle::wait
    pub fn wait_end(&self) -> TreeWait<TreeEnded> {
        TreeWait::new(self, |tree| tree.end().map(Ok))
    }

    /// Waits until a child runs, by its name or path, and returns its PID. A child runs after its
    /// `init`. The wait returns a running child at once, even if the child is about to fail: see
    /// [`changes`](Self::changes) for a restart.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// # use std::time::Duration;
    /// use ganger_supervise::{ChildSpec, Supervisor};
    ///
    /// # let scheduler = Scheduler::builder().start()?;
    /// let cache = || actor_fn(|_, by: u32, _| Ok(println!("{}", 100 / by)));
    /// let web = move || {
    ///     let cache = ChildSpec::new("cache", cache);
    ///     Supervisor::one_for_one().with(cache.back_off(Duration::from_millis(1)))
    /// };
    /// let tree = Supervisor::one_for_one().child("web", web).start(&scheduler)?;
    /// let before = tree.wait_up("web/cache").wait()?;
    ///
    /// let mut changes = tree.changes();
    /// tree.address::<u32>("web/cache")?.send(0)?; // It panics, and is restarted.
    /// while tree.child("web/cache").is_none_or(|it| it == before) {
    ///     changes.next_blocking()?;
    /// }
    /// tree.stop();
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// The wait's: [`TreeError::Ended`] when the supervisor has ended, and [`TreeError::Child`]
    /// when the child is unknown, or when the child, or a supervisor on the path, is stopped.
    pub fn wait_up(&self, path: impl Into<String>) -> TreeWait<Pid> {
        let path = path.into();
        TreeWait::new(self, move |tree| tree.up(&path))
    }

    fn up(&self, path: &str) -> Option<Result<Pid, TreeError>> {
        if let Some(end) = self.end() {
            return Some(Err(end.into()));
        }
        let path = || path.to_owned();
        let error = match self.view.up(&path()) {
            Up::Is(pid) => return Some(Ok(pid)),
            Up::NotYet => return None,
            Up::Never => AddressError::NotRunning {
                path: path(),
                state: ChildState::Stopped,
            },
            Up::Unknown { there } => AddressError::NoChild {
                path: path(),
                there,
            },
        };
        Some(Err(error.into()))
    }

    /// Returns the changes from now on: starts, ends and restarts of children, in supervisors below
    /// as well.
    ///
    /// A `Changes` keeps no changes, only the count of changes at its last look. So several changes
    /// between two looks are a single change, and a slow reader costs nothing. A look is
    /// O(children).
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_supervise::{ChildSpec, Supervisor};
    ///
    /// # let scheduler = Scheduler::builder().start()?;
    /// let tree = Supervisor::one_for_one().start(&scheduler)?;
    /// let mut changes = tree.changes();
    /// tree.start_child(ChildSpec::new("log", || actor_fn(|_, (): (), _| Ok(())))).wait()?;
    /// tree.stop();
    /// // A task calls `changes.next().await`.
    /// while let Ok(children) = changes.next_blocking() {
    ///     println!("{children:?}");
    /// }
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes {
            tree: self.clone(),
            seen: self.view.version(),
        }
    }
}
