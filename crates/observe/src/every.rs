//! A thread that looks at a scheduler once a period.
//!
//! The thread wakes once a period, and not at all where there is none. It keeps neither the
//! scheduler running nor its memory, and ends with them.

use ganger_sched::Handle;
use ganger_sync::sync::lock;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

/// The thread, until it is dropped.
pub(crate) struct Every {
    end: Arc<End>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct End {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl End {
    /// Waits for a period; whether the thread goes on.
    fn wait(&self, period: Duration) -> bool {
        let is_over = lock(&self.is_over);
        let waited = (self.changed).wait_timeout_while(is_over, period, |is_over| !*is_over);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Every {
    /// Starts a thread of that name, which calls `look` once a period, from now on.
    pub(crate) fn start(
        name: &str,
        scheduler: &Handle,
        period: Duration,
        mut look: impl FnMut(&Handle) + Send + 'static,
    ) -> io::Result<Self> {
        let end = Arc::<End>::default();
        let (seen, weak) = (Arc::clone(&end), scheduler.downgrade());
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
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Every {
    /// Waits for a look that has begun, unless it is this thread's own.
    fn drop(&mut self) {
        *lock(&self.end.is_over) = true;
        self.end.changed.notify_all();
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
