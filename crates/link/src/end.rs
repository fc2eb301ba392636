//! The end of a process, for any number of waiting threads and tasks.

use ganger_proc_api::{ExitCause, Pid};
use ganger_sched::{ExitAction, Handle, Watcher};
use ganger_sync::sync::{Condvar, Mutex, lock};
use ganger_sync::{contain, refuse_to_wait_in_driver};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The end of a process: a future of its cause, also for threads. Each clone waits for itself.
///
/// A [`ProcessHandle`](ganger_sched::ProcessHandle) gives the result, to a single owner. An `End`
/// gives the cause, to any number of waiters.
///
/// ```
/// use ganger_link::Registry;
/// use ganger_proc_api::{BoxError, ExitCause, process_fn};
/// use ganger_sched::Scheduler;
///
/// let scheduler = Scheduler::start_default()?;
/// let process = scheduler.spawn(process_fn(|_, _, _| Ok(())))?;
/// let end = scheduler.end_of(process.pid())?;
/// let others: Vec<_> = (0..4)
///     .map(|_| std::thread::spawn({ let end = end.clone(); move || end.wait() }))
///     .collect();
/// scheduler.terminate(process.pid())?;
/// for other in others {
///     assert_eq!(other.join().unwrap(), ExitCause::Terminated);
/// }
/// # Ok::<(), BoxError>(())
/// ```
pub struct End {
    pid: Pid,
    /// The key of this clone's waker.
    number: u64,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    has_ended: Condvar,
}

#[derive(Default)]
struct State {
    cause: Option<ExitCause>,
    wakers: BTreeMap<u64, Waker>,
    /// The number of the last clone.
    last: u64,
}

/// The action at the end of the process.
struct Tells(Weak<Shared>);

impl ExitAction for Tells {
    fn tell(self: Box<Self>, _: Pid, cause: &ExitCause) {
        if let Some(shared) = self.0.upgrade() {
            shared.settle(cause.clone());
        }
    }

    fn is_watch(&self) -> bool {
        true
    }

    fn watcher(&self) -> Option<Watcher> {
        Some(Watcher::Outside)
    }

    fn is_over(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Shared {
    fn settle(&self, cause: ExitCause) {
        let mut state = lock(&self.state);
        state.cause = Some(cause);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.has_ended.notify_all();
        for waker in wakers.into_values() {
            // Each alone: a panic must not keep the rest from waking.
            contain(|| waker.wake());
        }
    }
}

impl End {
    /// Creates the wait for the end of the process with this PID, which is over at once without
    /// such a process.
    pub(crate) fn of(scheduler: &Handle, pid: Pid) -> Self {
        let shared = Arc::new(Shared::default());
        let tells = Tells(Arc::downgrade(&shared));
        if let Err(gone) = scheduler.add_exit_action(pid, Box::new(tells)) {
            gone.into_action().tell(pid, &ExitCause::NotFound);
        }
        Self {
            pid,
            number: 0,
            shared,
        }
    }

    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the cause, if the process has ended.
    #[must_use]
    pub fn cause(&self) -> Option<ExitCause> {
        lock(&self.shared.state).cause.clone()
    }

    /// Blocks until the process has ended. Must not be called in a step: its worker would wait.
    ///
    /// # Panics
    /// When the process has not ended, and this thread is in a scheduler's driver.
    #[must_use]
    #[track_caller]
    pub fn wait(&self) -> ExitCause {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(cause) = &state.cause {
                return cause.clone();
            }
            refuse_to_wait_in_driver();
            let waited = self.shared.has_ended.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits as [`wait`](Self::wait) does, but gives up after `timeout`.
    ///
    /// # Panics
    /// As for [`wait`](Self::wait).
    #[must_use]
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> Option<ExitCause> {
        let state = lock(&self.shared.state);
        if state.cause.is_none() {
            refuse_to_wait_in_driver();
        }
        let is_alive = |state: &mut State| state.cause.is_none();
        let waited = (self.shared.has_ended).wait_timeout_while(state, timeout, is_alive);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.cause.clone()
    }
}

impl Future for End {
    type Output = ExitCause;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExitCause> {
        let waker = context.waker().clone();
        let mut state = lock(&self.shared.state);
        if let Some(cause) = &state.cause {
            return Poll::Ready(cause.clone());
        }
        let before = state.wakers.insert(self.number, waker);
        drop(state);
        // A waker's destructor is another's code.
        drop(before);
        Poll::Pending
    }
}

impl Clone for End {
    fn clone(&self) -> Self {
        let mut state = lock(&self.shared.state);
        state.last += 1;
        Self {
            pid: self.pid,
            number: state.last,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        let waker = state.wakers.remove(&self.number);
        drop(state);
        drop(waker);
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("pid", &self.pid)
            .field("cause", &self.cause())
            .finish()
    }
}
