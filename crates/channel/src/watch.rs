//! The latest value, for any number of watchers.
//!
//! A watcher sees the latest value, and is woken for a newer value. A watcher does not see values
//! between two of its looks. Values are behind an `Arc`, so that no user's code runs under a lock.

use crate::block::block_on;
use crate::error::RecvError;
use crate::lock::Lock;
use crate::shared::{add, is_last, wake_all};
use crate::waiters::{Awaited, Seat, Waiters, leave, poll};
use ganger_sync::atomic::AtomicUsize;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Creates a value that changes, for any number of watchers. Its first value is `value`.
///
/// ```
/// let (publisher, mut watcher) = ganger_channel::watch("starting");
/// publisher.send("ready");
/// publisher.send("busy");
/// watcher.changed_blocking()?;
/// assert_eq!(*watcher.latest(), "busy");
/// # Ok::<(), ganger_channel::RecvError>(())
/// ```
pub fn watch<T>(value: T) -> (Publisher<T>, Watcher<T>) {
    let shared = Arc::new(Shared {
        state: Lock::new(State {
            value: Arc::new(value),
            version: 0,
            is_closed: false,
            waiters: Waiters::new(),
        }),
        publishers: AtomicUsize::new(1),
    });
    let watcher = Watcher {
        shared: Arc::clone(&shared),
        seen: 0,
    };
    (Publisher(shared), watcher)
}

struct Shared<T> {
    state: Lock<State<T>>,
    publishers: AtomicUsize,
}

struct State<T> {
    value: Arc<T>,
    version: u64,
    is_closed: bool,
    waiters: Waiters,
}

impl<T> Awaited for State<T> {
    const KIND: &'static str = "publisher of the watch";

    fn waiters(&mut self) -> &mut Waiters {
        &mut self.waiters
    }
}

/// Sets the value of a [`watch`].
pub struct Publisher<T>(Arc<Shared<T>>);

/// Looks at the value of a [`watch`]. A clone has seen the same values.
pub struct Watcher<T> {
    shared: Arc<Shared<T>>,
    /// The version last seen.
    seen: u64,
}

impl<T> Publisher<T> {
    /// Sets the value, and wakes all waiting watchers. Returns the previous value. Never blocks.
    #[allow(clippy::must_use_candidate, reason = "it sends")]
    pub fn send(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut state = self.0.state.lock();
        let before = mem::replace(&mut state.value, value);
        state.version += 1;
        let wakes = state.waiters.end_all();
        drop(state);
        wake_all(wakes);
        before
    }

    /// Returns the value.
    #[must_use]
    pub fn latest(&self) -> Arc<T> {
        Arc::clone(&self.0.state.lock().value)
    }

    /// Returns a watcher that has seen the current value.
    #[must_use]
    pub fn subscribe(&self) -> Watcher<T> {
        let seen = self.0.state.lock().version;
        Watcher {
            shared: Arc::clone(&self.0),
            seen,
        }
    }
}

impl<T> Watcher<T> {
    /// Returns the latest value, which now counts as seen.
    #[must_use]
    pub fn latest(&mut self) -> Arc<T> {
        let state = self.shared.state.lock();
        self.seen = state.version;
        Arc::clone(&state.value)
    }

    /// Returns whether the latest value is unseen.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.shared.state.lock().version > self.seen
    }

    /// Waits until the latest value is unseen; it then counts as seen.
    ///
    /// # Errors
    /// The future's: [`RecvError::Closed`] if it has seen the last value, and all publishers are
    /// gone.
    pub fn changed(&mut self) -> Changed<'_, T> {
        Changed {
            watcher: self,
            seat: Seat::default(),
        }
    }

    /// Waits, as [`changed`](Self::changed) does, but blocks the thread. Does not block a worker of
    /// a scheduler.
    ///
    /// # Errors
    /// As [`changed`](Self::changed), and [`RecvError::OnWorker`] if it would wait in a step.
    pub fn changed_blocking(&mut self) -> Result<(), RecvError> {
        self.changed_within(None)
    }

    /// Waits, as [`changed_blocking`](Self::changed_blocking) does, but for at most `timeout`.
    ///
    /// # Errors
    /// As [`changed_blocking`](Self::changed_blocking), and [`RecvError::Timeout`].
    pub fn changed_timeout(&mut self, timeout: Duration) -> Result<(), RecvError> {
        self.changed_within(Some(timeout))
    }

    fn changed_within(&mut self, timeout: Option<Duration>) -> Result<(), RecvError> {
        if let Some(result) = look(&self.shared.state.lock(), &mut self.seen) {
            return result;
        }
        if !ganger_sched::internal::may_block("a watcher that waits", "`changed`") {
            return Err(RecvError::OnWorker);
        }
        block_on(&mut self.changed(), timeout).unwrap_or(Err(RecvError::Timeout))
    }
}

fn look<T>(state: &State<T>, seen: &mut u64) -> Option<Result<(), RecvError>> {
    if state.version > *seen {
        *seen = state.version;
        return Some(Ok(()));
    }
    state.is_closed.then_some(Err(RecvError::Closed))
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        add(&self.0.publishers);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        if is_last(&self.0.publishers) {
            let mut state = self.0.state.lock();
            state.is_closed = true;
            let wakes = state.waiters.end_all();
            drop(state);
            wake_all(wakes);
        }
    }
}

impl<T> Clone for Watcher<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            seen: self.seen,
        }
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Watcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher")
            .field("has_changed", &self.has_changed())
            .finish_non_exhaustive()
    }
}

/// Waits for a newer value: see [`Watcher::changed`].
#[must_use = "a future does nothing until it is polled"]
pub struct Changed<'a, T> {
    watcher: &'a mut Watcher<T>,
    seat: Seat,
}

impl<T> Future for Changed<'_, T> {
    type Output = Result<(), RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Watcher { shared, seen } = &mut *this.watcher;
        poll(&shared.state, &mut this.seat, context, |state| {
            look(state, seen)
        })
    }
}

impl<T> Drop for Changed<'_, T> {
    fn drop(&mut self) {
        leave(&self.watcher.shared.state, &mut self.seat);
    }
}

impl<T> fmt::Debug for Changed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changed").field(self.watcher).finish()
    }
}
