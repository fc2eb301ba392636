//! A thread that looks at a scheduler once a period.
//!
//! The thread wakes once a period, or when it is asked to, and never without a period. The
//! thread keeps neither the scheduler running nor its memory, and ends with them.

use ganger_sched::Handle;
use ganger_sync::sync::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

/// The thread, until it is dropped.
pub(crate) struct Every {
    state: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    wish: Mutex<Wish>,
    changed: Condvar,
}

/// The owner's wish.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// A look once a period.
    #[default]
    Waits,
    /// A look now.
    Looks,
    /// The end.
    Ends,
}

impl Shared {
    /// Waits for a period, or for a wish; whether the thread goes on.
    fn wait(&self, period: Duration) -> bool {
        let wish = lock(&self.wish);
        let is_idle = |wish: &mut Wish| *wish == Wish::Waits;
        let waited = (self.changed).wait_timeout_while(wish, period, is_idle);
        let mut wish = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *wish == Wish::Looks {
            *wish = Wish::Waits;
        }
        *wish != Wish::Ends
    }
}

impl Every {
    /// Starts a thread of the name, which calls `look` once a period, from now on.
    pub(crate) fn start(
        name: &str,
        scheduler: &Handle,
        period: Duration,
        mut look: impl FnMut(&Handle) + Send + 'static,
    ) -> io::Result<Self> {
        let state = Arc::<Shared>::default();
        let (seen, weak) = (Arc::clone(&state), scheduler.downgrade());
        let body = move || {
            while let Some(handle) = weak.upgrade() {
                look(&handle);
                drop(handle);
                if !seen.wait(period) {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(body)?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    /// Has the thread look at once. Does not wait for the look.
    pub(crate) fn look_now(&self) {
        *lock(&self.state.wish) = Wish::Looks;
        self.state.changed.notify_all();
    }

    /// Returns whether the thread has ended, as with its scheduler.
    #[cfg(test)]
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Every {
    /// Waits for a look that has begun, unless it is this thread's own.
    fn drop(&mut self) {
        *lock(&self.state.wish) = Wish::Ends;
        self.state.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _has_panicked = thread.join();
        }
    }
}

impl fmt::Debug for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Every").finish_non_exhaustive()
    }
}
