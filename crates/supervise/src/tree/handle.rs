//! A running supervisor, to look at and to change from outside.

use super::error::{AddressError, TreeEnded};
use crate::child::{ChildRef, ChildSpec};
use crate::driver::{Kind, Order, Watching, asker, refused};
use crate::view::{ChildInfo, ChildState, View};
use ganger_proc_api::{CancelReason, Context, ExitReason, NotFound, Pid, Tag};
use ganger_sched::{Address, Call, ContextExt, ProcessHandle, WeakHandle};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

/// A running supervisor with its children: to look at, and to change. Cloning is cheap.
///
/// A `Tree` prints itself. Callers wait until a child is [up](Self::wait_up), until something
/// [changes](Self::changes), or until the [end](Self::wait_end). The tree shows the supervisor's
/// last notes: a child may have ended a moment ago and still count as running.
///
/// Changes are questions to the supervisor: a thread waits for the answer, a step asks with
/// `out.ask(call, tag)`, and a task awaits the call. Each question has a single answer. A start
/// overtaken by a stop fails at once, with
/// [`SuperviseError::Overtaken`](crate::SuperviseError::Overtaken) or
/// [`Stopping`](crate::SuperviseError::Stopping).
///
/// A process that asks for its own stop or restart, or for the stop of its own tree, can't wait for
/// the end: it would wait for itself. The process gets
/// [`SuperviseError::WaitsForItself`](crate::SuperviseError::WaitsForItself) at once, and the
/// supervisor goes on with the stop.
#[derive(Clone)]
pub struct Tree {
    pub(crate) view: Arc<View>,
    pub(crate) address: Address<Order>,
    pub(crate) scheduler: WeakHandle,
}

impl Tree {
    /// Returns the supervisor's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.address.pid()
    }

    /// Returns the children in the order of their start, with those of supervisors below.
    #[must_use]
    pub fn children(&self) -> Vec<ChildInfo> {
        self.view.children()
    }

    /// Returns the number of children, and of running children. O(1): a thread that asks again and
    /// again does not keep the supervisor from its children.
    ///
    /// # Errors
    /// [`TreeEnded`] when the supervisor has ended, and how.
    pub fn count(&self) -> Result<(usize, usize), TreeEnded> {
        let count = self.view.count();
        self.end().map_or(Ok(count), Err)
    }

    /// Returns the paths of the children that missed the deadline of their last stop, and were
    /// terminated.
    #[must_use]
    pub fn slow(&self) -> Vec<String> {
        self.view.slow()
    }

    /// Returns the PID of a child by its name, while the child runs. A path, such as `web/cache`,
    /// leads to children of supervisors below.
    #[must_use]
    pub fn child(&self, path: &str) -> Option<Pid> {
        self.view.find(path)?.pid
    }

    /// Returns the address of a child by its name or path. After a restart the child has another
    /// address, except after a restart in place.
    ///
    /// # Errors
    /// [`AddressError`] when the child is unknown, does not run, or takes messages of another type
    /// than `M`.
    pub fn address<M: Any>(&self, path: &str) -> Result<Address<M>, AddressError> {
        let path = || path.to_owned();
        let Some(entry) = self.view.find(&path()) else {
            return Err(AddressError::NoChild {
                path: path(),
                there: self.view.names(),
            });
        };
        let address = (entry.pid).and_then(|pid| self.scheduler.upgrade()?.address(pid));
        let Some(address) = address else {
            // A child that has just ended may count as running.
            let state = match entry.state {
                ChildState::Runs => ChildState::Waits,
                state => state,
            };
            return Err(AddressError::NotRunning {
                path: path(),
                state,
            });
        };
        let typed = address.typed();
        typed.map_err(|error| AddressError::WrongType {
            path: path(),
            error,
        })
    }

    /// Returns the tree of a supervisor below, by its name or path.
    ///
    /// # Errors
    /// As for [`address`](Self::address), when the supervisor is unknown or does not run.
    pub fn subtree(&self, path: &str) -> Result<Tree, AddressError> {
        let address = self.address::<Order>(path)?;
        let below = self.view.find(path).and_then(|it| it.below);
        let view = below.ok_or_else(|| AddressError::NotRunning {
            path: path.to_owned(),
            state: ChildState::Waits,
        })?;
        Ok(Tree {
            view,
            address,
            scheduler: self.scheduler.clone(),
        })
    }

    /// Adds a child and starts it. The answer is its PID.
    ///
    /// The answer is an error when the child does not start, and the supervisor forgets the child.
    /// The name of another child is an error as well, except for a
    /// [dynamic](crate::Supervisor::dynamic) supervisor.
    pub fn start_child(&self, child: ChildSpec) -> Call<Pid> {
        let child = Box::new(child);
        self.address
            .call_or(move |reply| Order(Kind::Start(child, None, reply)), refused)
    }

    /// Adds a child, and has the process of `ctx` monitor its first process from the start, under
    /// the tag. After a restart as another process no further notice comes.
    pub fn start_child_monitored(&self, ctx: &Context, child: ChildSpec, tag: Tag) -> Call<Pid> {
        let child = Box::new(child);
        let watcher = ctx.untyped_address().map(|it| Watching::new(it, tag));
        self.address.call_or(
            move |reply| Order(Kind::Start(child, watcher, reply)),
            refused,
        )
    }

    /// Stops a child: cancels it, and terminates it at its deadline. The answer comes after its
    /// end. The supervisor keeps the child, unless the child is temporary or the supervisor is
    /// dynamic. The child stays stopped until [`restart_child`](Self::restart_child), or until a
    /// supervisor above restarts the tree.
    pub fn stop_child(&self, child: impl Into<ChildRef>) -> Call<()> {
        let child = child.into();
        self.address.call_or(
            move |reply| Order(Kind::Stop(child, false, asker(&reply), reply)),
            refused,
        )
    }

    /// Stops a child, and forgets it.
    pub fn remove_child(&self, child: impl Into<ChildRef>) -> Call<()> {
        let child = child.into();
        self.address.call_or(
            move |reply| Order(Kind::Stop(child, true, asker(&reply), reply)),
            refused,
        )
    }

    /// Starts a stopped child, or stops and starts a running child. The answer is the PID of the
    /// new process. The restart does not count as a failure, and leaves the rest of the group
    /// alone.
    pub fn restart_child(&self, child: impl Into<ChildRef>) -> Call<Pid> {
        let child = child.into();
        self.address.call_or(
            move |reply| Order(Kind::Restart(child, asker(&reply), reply)),
            refused,
        )
    }

    /// Stops all children, and the supervisor. The answer comes after the ends of the children,
    /// with the paths of the [slow](Self::slow) children.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// use ganger_supervise::{Supervisor, Tree};
    ///
    /// # let scheduler = Scheduler::builder().build()?;
    /// # scheduler.start()?;
    /// let child = || actor_fn(|_, (): (), _| Ok(()));
    /// let handle = Supervisor::one_for_one().child("child", child).start(&scheduler)?;
    /// // A process or a task has a clone, and asks by `out.ask(call, tag)` or `.await`.
    /// let tree: Tree = (*handle).clone();
    /// assert!(tree.stop_all().wait()?.is_empty());
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn stop_all(&self) -> Call<Vec<String>> {
        self.address
            .call_or(|reply| Order(Kind::StopAll(asker(&reply), reply)), refused)
    }

    /// Asks the supervisor to stop: its children end in the reverse order of their start, and then
    /// the supervisor ends as cancelled.
    ///
    /// # Errors
    /// [`NotFound`] when the supervisor has ended.
    pub fn cancel(&self, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        let pid = self.pid();
        let scheduler = self.scheduler.upgrade().ok_or(NotFound { pid })?;
        scheduler.cancel(pid, reason)
    }

    /// Returns the end of the supervisor, if the supervisor has ended.
    pub(super) fn end(&self) -> Option<TreeEnded> {
        Some(TreeEnded {
            cause: self.view.end_cause()?,
            supervisor: Arc::clone(&self.view.label),
            pid: self.pid(),
        })
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view.fmt(f)
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("pid", &self.pid())
            .field("children", &self.children())
            .finish()
    }
}

/// How a supervisor and its children have ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct TreeEnd {
    /// The end of the supervisor: cancelled where all went well.
    pub reason: ExitReason,
    /// The paths of the children that missed their deadlines, and were terminated.
    pub slow: Vec<String>,
}

impl fmt::Display for TreeEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if !self.slow.is_empty() {
            write!(f, "; too slow to stop: {}", self.slow.join(", "))?;
        }
        Ok(())
    }
}

/// A [`Tree`] with its end: a thread calls [`wait`](Self::wait), and a task awaits the handle.
/// Dropping the handle leaves the supervisor alone.
///
/// ```
/// # use ganger_proc_api::{BoxError, actor_fn};
/// # use ganger_sched::Scheduler;
/// # use std::time::Duration;
/// use ganger_supervise::Supervisor;
///
/// # let scheduler = Scheduler::builder().start()?;
/// let tree = Supervisor::one_for_one()
///     .intensity(0, Duration::from_secs(1))
///     .child("division", || actor_fn(|_, by: u32, _| Ok(println!("{}", 100 / by))))
///     .start(&scheduler)?;
/// assert_eq!((tree.is_finished(), tree.count()?), (false, (1, 1)));
/// let shown = (*tree).clone();
/// tree.address::<u32>("division")?.send(0)?;
/// assert!(tree.wait().into_result().is_err()); // It has given up.
/// assert!(shown.is_finished() && shown.count().is_err());
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct TreeHandle {
    pub(crate) tree: Tree,
    pub(crate) handle: ProcessHandle<Order>,
}

impl TreeHandle {
    /// Returns whether the supervisor has ended, so that [`wait`](Self::wait) would return at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// Blocks until the supervisor has ended, and says how: see [`ProcessHandle::wait`].
    ///
    /// # Panics
    /// The panics of [`ProcessHandle::wait`].
    #[must_use]
    #[track_caller]
    pub fn wait(self) -> ExitReason {
        self.handle.wait()
    }

    /// Waits as [`wait`](Self::wait) does, but gives up after `timeout`.
    ///
    /// # Errors
    /// Gives the handle back when the supervisor has not ended by then.
    ///
    /// # Panics
    /// The panics of [`ProcessHandle::wait_timeout`].
    #[track_caller]
    pub fn wait_timeout(self, timeout: Duration) -> Result<ExitReason, Self> {
        let Self { tree, handle } = self;
        handle
            .wait_timeout(timeout)
            .map_err(|handle| Self { tree, handle })
    }

    /// Stops the supervisor and its children, and waits for the end.
    pub fn stop(self) -> TreeEnd {
        // A supervisor that is not found has ended.
        let _ = self.tree.cancel("stopped");
        let reason = self.handle.wait();
        let slow = self.tree.slow();
        TreeEnd { reason, slow }
    }

    /// Returns the handle of the supervisor.
    #[must_use]
    pub fn into_handle(self) -> ProcessHandle<Order> {
        self.handle
    }
}

/// Waits for the end of the supervisor.
///
/// # Panics
/// When it is polled after it was ready.
impl Future for TreeHandle {
    type Output = ExitReason;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<ExitReason> {
        Pin::new(&mut self.get_mut().handle).poll(context)
    }
}

impl Deref for TreeHandle {
    type Target = Tree;

    fn deref(&self) -> &Tree {
        &self.tree
    }
}

impl fmt::Display for TreeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}
