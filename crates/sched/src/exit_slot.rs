//! Where a process's exit reason waits for whoever holds its handle.
//!
//! Nothing of a user's runs under the lock: wakers are cloned before it is taken, and woken or
//! dropped after it is released.

use ganger_proc_api::ExitReason;
use ganger_sync::Parker;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// One exit reason on its way from the worker that ended the process to the one waiter.
#[derive(Default)]
pub(crate) struct ExitSlot(Mutex<Slot>);

/// | state | left by |
/// |---|---|
/// | `Empty`, `Awaited` | the worker (`fill`), the handle (`poll`, `abandon`) |
/// | `Full` | the handle (`take`, `poll`, `abandon`) |
/// | `Taken`, `Abandoned` | nobody |
#[derive(Default)]
enum Slot {
    /// The process lives, and nobody waits.
    #[default]
    Empty,
    /// The process lives; wake this when it ends.
    Awaited(Waker),
    /// The process has ended.
    Full(ExitReason),
    /// The reason has been taken.
    Taken,
    /// The handle is gone.
    Abandoned,
}

impl ExitSlot {
    /// Leaves the reason, and returns the waiter's waker, which the caller must wake. Called once.
    ///
    /// # Errors
    /// Gives the reason back when nobody will ever take it.
    pub(crate) fn fill(&self, reason: ExitReason) -> Result<Option<Waker>, ExitReason> {
        let mut slot = self.lock();
        match mem::replace(&mut *slot, Slot::Abandoned) {
            Slot::Abandoned => Err(reason),
            before => {
                *slot = Slot::Full(reason);
                match before {
                    Slot::Awaited(waker) => Ok(Some(waker)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The handle is gone: nobody will take the reason.
    pub(crate) fn abandon(&self) {
        let before = mem::replace(&mut *self.lock(), Slot::Abandoned);
        drop(before);
    }

    /// Takes the reason if it is there.
    pub(crate) fn take(&self) -> Option<ExitReason> {
        let mut slot = self.lock();
        match mem::replace(&mut *slot, Slot::Taken) {
            Slot::Full(reason) => Some(reason),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Whether the process has ended.
    pub(crate) fn is_filled(&self) -> bool {
        matches!(*self.lock(), Slot::Full(_) | Slot::Taken)
    }

    /// Takes the reason, or has the task woken when it is there.
    ///
    /// # Panics
    /// When the reason has been taken before, as futures do that are polled after their end.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<ExitReason> {
        let waker = context.waker().clone();
        let before = {
            let mut slot = self.lock();
            match mem::replace(&mut *slot, Slot::Taken) {
                live @ (Slot::Empty | Slot::Awaited(_)) => {
                    *slot = Slot::Awaited(waker);
                    live
                }
                ended => ended,
            }
        };
        match before {
            Slot::Full(reason) => Poll::Ready(reason),
            Slot::Empty | Slot::Awaited(_) => Poll::Pending,
            Slot::Taken | Slot::Abandoned => {
                panic!("a ProcessHandle was polled after it had completed")
            }
        }
    }

    /// Blocks until the reason is there and takes it; gives up after `timeout` if there is one.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<ExitReason> {
        let parker = Arc::new(ThreadWaker(Parker::new()));
        let waker = Waker::from(Arc::clone(&parker));
        let context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(reason) = self.poll(&context) {
                return Some(reason);
            }
            match timeout {
                None => parker.0.park(),
                Some(timeout) => {
                    parker.0.park_timeout(timeout);
                    return self.take();
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ThreadWaker(Parker);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
