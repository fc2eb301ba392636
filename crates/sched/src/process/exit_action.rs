//! Actions at the end of a process.

use ganger_proc_api::{ExitCause, Pid};

/// An action at the end of a process: for crates that build on the scheduler, such as links, locks
/// or timers.
///
/// An action is registered with a process by
/// [`ContextExt::add_exit_action`](crate::ContextExt::add_exit_action) or
/// [`Handle::add_exit_action`](crate::Handle::add_exit_action). The action stays when the process
/// is upgraded. Actions registered by the process itself also run, as at its end, when a supervisor
/// restarts the process in place.
///
/// The end of the process runs its actions once, whatever the reason: first all of
/// [`release`](Self::release) in the order of registration, and then all of [`tell`](Self::tell).
/// So visible resources are released before others are notified.
///
/// The thread that ends the process makes the calls, after the process has been closed and dropped.
/// They should be short, and must not wait for the process's handle. A panicking call is contained,
/// counted and reported, and the other calls are made. Of many calls the thread makes a portion,
/// and then lets other processes have their turns.
///
/// ```
/// use ganger_proc_api::{BoxError, ExitCause, Pid, process_fn};
/// use ganger_sched::{ExitAction, Scheduler};
/// use std::sync::{Arc, Mutex, mpsc};
///
/// /// A lock that a process holds, and a thread that waits for it.
/// struct Held(Arc<Mutex<Option<Pid>>>, mpsc::Sender<ExitCause>);
///
/// impl ExitAction for Held {
///     fn release(&mut self, _: Pid) {
///         *self.0.lock().unwrap() = None;
///     }
///
///     fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
///         let _ = self.1.send(cause.clone());
///     }
/// }
///
/// let scheduler = Scheduler::start_default()?;
/// let holder = scheduler.spawn(process_fn(|_, _, _| Ok(())))?;
/// let lock = Arc::new(Mutex::new(Some(holder.pid())));
/// let (waiter, is_free) = mpsc::channel();
/// scheduler.add_exit_action(holder.pid(), Box::new(Held(lock.clone(), waiter)))?;
/// scheduler.terminate(holder.pid())?;
/// assert_eq!(is_free.recv()?, ExitCause::Terminated);
/// assert_eq!(*lock.lock().unwrap(), None);
/// # Ok::<(), BoxError>(())
/// ```
pub trait ExitAction: Send + 'static {
    /// Releases visible resources: a name, a lock, a place in a group.
    ///
    /// Runs while the PID still belongs to the process and to no other. An action that arrives
    /// while the process is being closed runs when the PID is gone, before any action notifies
    /// others.
    fn release(&mut self, process: Pid) {
        let _ = process;
    }

    /// Notifies others of the process's end and its cause.
    ///
    /// The PID and the place of the process are free, and `Lifecycle::on_complete` has been called.
    /// The handle does not have the exit reason yet.
    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        let _ = (process, cause);
    }

    /// Notifies as [`tell`](Self::tell) does, for an action with possibly many others to notify.
    /// The action notifies at most `budget` of them, with `budget` at least 1, and subtracts their
    /// number. Returns itself when more are left: other processes have turns before it continues.
    fn tell_some(
        self: Box<Self>,
        process: Pid,
        cause: &ExitCause,
        budget: &mut usize,
    ) -> Option<Box<dyn ExitAction>> {
        *budget -= 1;
        self.tell(process, cause);
        None
    }

    /// Notifies the watcher of the process's failed start, for this cause. Replaces
    /// [`tell`](Self::tell), which it calls by default with [`ExitCause::NotFound`].
    fn not_started(self: Box<Self>, process: Pid, cause: &ExitCause) {
        let _ = cause;
        self.tell(process, &ExitCause::NotFound);
    }

    /// Returns whether nothing is left to do, because a lock has been returned for instance. Such
    /// an action is dropped some time before the end, so a long-lived process does not collect
    /// them.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns whether the action also runs when the process fails and is restarted in place, as it
    /// belongs to the incarnation. Actions registered by
    /// [`ContextExt::add_exit_action`](crate::ContextExt::add_exit_action) do so in any case.
    fn ends_with_incarnation(&self) -> bool {
        false
    }

    /// Returns whether the action notifies code that handles failures, as a monitor does. Otherwise
    /// a failure is [reported](crate::Builder::on_failure) in addition. Called after
    /// [`release`](Self::release).
    fn is_watch(&self) -> bool {
        false
    }

    /// Returns the watcher that the action notifies, as a monitor does: for a reader from outside,
    /// by `ProcessLook::watchers` of an observed scheduler. The reader's thread calls it at any
    /// time. Should be short.
    fn watcher(&self) -> Option<Watcher> {
        None
    }

    /// Returns whether an action for a process of another node comes behind all messages of the
    /// process to this node: see [`Remote`](crate::Remote). Otherwise the action may overtake the
    /// messages.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Returns the key to [take the action back](crate::Handle::remove_exit_actions). Without a key
    /// the action stays.
    fn key(&self) -> Option<ExitKey> {
        None
    }
}

/// The receiver of the news of a process's end: see [`ExitAction::watcher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Watcher {
    /// A process.
    Process(Pid),
    /// A thread, or code outside of any process.
    Outside,
}

/// An action of an incarnation, whatever its own `ends_with_incarnation` returns.
pub(crate) struct OfIncarnation(pub(crate) Box<dyn ExitAction>);

impl ExitAction for OfIncarnation {
    fn release(&mut self, process: Pid) {
        self.0.release(process);
    }

    fn tell(self: Box<Self>, process: Pid, cause: &ExitCause) {
        self.0.tell(process, cause);
    }

    fn tell_some(
        self: Box<Self>,
        process: Pid,
        cause: &ExitCause,
        budget: &mut usize,
    ) -> Option<Box<dyn ExitAction>> {
        self.0.tell_some(process, cause, budget)
    }

    fn not_started(self: Box<Self>, process: Pid, cause: &ExitCause) {
        self.0.not_started(process, cause);
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }

    fn ends_with_incarnation(&self) -> bool {
        true
    }

    fn is_watch(&self) -> bool {
        self.0.is_watch()
    }

    fn watcher(&self) -> Option<Watcher> {
        self.0.watcher()
    }

    fn is_in_order(&self) -> bool {
        self.0.is_in_order()
    }

    fn key(&self) -> Option<ExitKey> {
        self.0.key()
    }
}

/// The key to take exit actions back. Several actions of a process may have the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExitKey {
    owner: u64,
    number: u64,
}

impl ExitKey {
    /// Creates the key of `owner` with this number.
    ///
    /// Owners of different kinds must not be mistaken for each other. So an owner is the address of
    /// an object that the action keeps alive, or of a static.
    #[must_use]
    pub const fn new(owner: u64, number: u64) -> Self {
        Self { owner, number }
    }
}
