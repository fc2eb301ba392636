//! Looking at a supervisor from outside, and asking it for changes.

use crate::child::Child;
use crate::order::{ChildRef, Kind, Order};
use crate::view::{ChildInfo, View};
use ganger_proc_api::{CancelReason, ExitReason, NotFound, Pid};
use ganger_sched::{Address, Call, ProcessHandle, WeakHandle};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A supervisor that runs, with its children: to look at, and to change. Cloning it is cheap.
///
/// It prints itself as a tree. What it shows is what the supervisor has noted last: a child that
/// has just ended may still run by it. The calls that change something are questions to the
/// supervisor: a thread waits for the answer, a step asks with `out.ask(call, tag)`, and a task
/// awaits it.
#[derive(Clone)]
pub struct Tree {
    pub(crate) view: Arc<View>,
    pub(crate) address: Address<Order>,
    pub(crate) scheduler: WeakHandle,
}

impl Tree {
    /// The supervisor's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.address.pid()
    }

    /// The children in the order of their start, with those of supervisors below.
    #[must_use]
    pub fn children(&self) -> Vec<ChildInfo> {
        self.view.children()
    }

    /// How many children the supervisor has, and how many of them run.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        self.view.count()
    }

    /// The paths of the children that did not finish in the time that they had when they were
    /// stopped last, and were terminated.
    #[must_use]
    pub fn slow(&self) -> Vec<String> {
        let mut slow = Vec::new();
        add_slow(&self.children(), "", &mut slow);
        slow
    }

    /// The PID of the child with that name, while it runs. A path, such as `web/cache`, leads to
    /// children of supervisors below. O(children).
    #[must_use]
    pub fn child(&self, path: &str) -> Option<Pid> {
        self.view.find(path)?.pid
    }

    /// The address of the child with that name, or at that path, if it runs and takes messages of
    /// type `M`. After a restart the child has another address.
    #[must_use]
    pub fn address<M: Any>(&self, path: &str) -> Option<Address<M>> {
        let pid = self.child(path)?;
        self.scheduler.upgrade()?.address(pid)?.typed().ok()
    }

    /// Starts one more child. The answer is its PID.
    ///
    /// It is an error when the child does not start; then the supervisor does not know it. So it
    /// is when a child has its name, but for a [dynamic](crate::Supervisor::dynamic) supervisor.
    pub fn start_child(&self, child: Child) -> Call<Pid> {
        let child = Box::new(child);
        self.address
            .call(move |reply| Order(Kind::Start(child, reply)))
    }

    /// Stops a child: cancels it, and terminates it when its time is over. The answer comes when it
    /// has ended. It stays known, unless it is temporary or the supervisor is dynamic, and is not
    /// restarted until [`restart_child`](Self::restart_child) or a supervisor above does.
    pub fn stop_child(&self, child: impl Into<ChildRef>) -> Call<()> {
        let child = child.into();
        self.address
            .call(move |reply| Order(Kind::Stop(child, false, reply)))
    }

    /// Stops a child, and forgets it.
    pub fn remove_child(&self, child: impl Into<ChildRef>) -> Call<()> {
        let child = child.into();
        self.address
            .call(move |reply| Order(Kind::Stop(child, true, reply)))
    }

    /// Starts a child that is stopped, or stops and starts one that runs. The answer is the PID of
    /// its new process. It is no failure, and leaves the others of its group alone.
    pub fn restart_child(&self, child: impl Into<ChildRef>) -> Call<Pid> {
        let child = child.into();
        self.address
            .call(move |reply| Order(Kind::Restart(child, reply)))
    }

    /// Asks the supervisor to stop: its children end in the reverse order of their start, and then
    /// it ends as cancelled.
    ///
    /// # Errors
    /// [`NotFound`] when it has ended.
    pub fn cancel(&self, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        let pid = self.pid();
        let scheduler = self.scheduler.upgrade().ok_or(NotFound { pid })?;
        scheduler.cancel(pid, reason)
    }
}

fn add_slow(children: &[ChildInfo], above: &str, slow: &mut Vec<String>) {
    for child in children {
        let path = format!("{above}{}", child.name);
        if let Some(below) = &child.children {
            add_slow(below, &format!("{path}/"), slow);
        }
        if child.was_slow {
            slow.push(path);
        }
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

/// A [`Tree`] whose end the owner may wait for. Dropping it leaves the supervisor alone.
#[derive(Debug)]
pub struct TreeHandle {
    pub(crate) tree: Tree,
    pub(crate) handle: ProcessHandle<Order>,
}

impl TreeHandle {
    /// Waits for the end of the supervisor: see [`ProcessHandle::wait`].
    #[must_use]
    pub fn wait(self) -> ExitReason {
        self.handle.wait()
    }

    /// Stops the supervisor and its children, and waits for that.
    pub fn stop(self) -> ExitReason {
        // One that is not found has ended.
        let _ = self.tree.cancel("stopped");
        self.handle.wait()
    }

    /// The handle of the supervisor.
    #[must_use]
    pub fn into_handle(self) -> ProcessHandle<Order> {
        self.handle
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
