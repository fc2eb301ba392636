//! Threads that wait for what tasks wait for.

use ganger_sync::{Parker, refuse_to_wait_in_driver};
#[cfg(not(ganger_loom))]
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Blocks this thread until the future is ready.
///
/// Must not be called from a step outside of `Context::blocking`: its worker would wait.
///
/// # Panics
/// Where it would wait in a scheduler's driver, as in a task of `tokio::spawn`: for ever.
///
/// ```
/// assert_eq!(ganger_wait::block_on(async { 42 }), 42);
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let polled = until_ready(None, |waker| {
        future.as_mut().poll(&mut Context::from_waker(waker))
    });
    match polled {
        Some(output) => output,
        None => unreachable!("it waits for ever"),
    }
}

/// As [`block_on`], but no longer than that: `None` when the future is not ready by then, which is
/// dropped.
///
/// # Panics
/// As [`block_on`].
#[must_use]
#[track_caller]
pub fn block_on_for<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    until_ready(Some(time), |waker| {
        future.as_mut().poll(&mut Context::from_waker(waker))
    })
}

/// Blocks until `poll` is ready.
#[track_caller]
pub(crate) fn until_ready<T>(
    timeout: Option<Duration>,
    mut poll: impl FnMut(&Waker) -> Poll<T>,
) -> Option<T> {
    let until = timeout.map(|it| Instant::now().checked_add(it));
    let Lent(sleeper) = &Lent::take();
    let waker = Waker::from(Arc::clone(sleeper));
    loop {
        if let Poll::Ready(output) = poll(&waker) {
            return Some(output);
        }
        refuse_to_wait_in_driver();
        match until {
            // A time that is too far away never comes.
            None | Some(None) => sleeper.0.park(),
            Some(Some(until)) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                sleeper.0.park_timeout(left);
            }
        }
    }
}

/// Wakes a thread that waits.
#[derive(Default)]
struct Sleeper(Parker);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The sleeper of this thread, while this thread waits. A token that an earlier wait has left ends
/// a sleep early. A wait inside of a poll of this one has another: it would take the token.
struct Lent(Arc<Sleeper>);

#[cfg(not(ganger_loom))]
thread_local! {
    static OWN: Cell<Option<Arc<Sleeper>>> = const { Cell::new(None) };
}

impl Lent {
    #[cfg(not(ganger_loom))]
    fn take() -> Self {
        // A thread that ends has no thread-locals any more.
        Self(OWN.try_with(Cell::take).ok().flatten().unwrap_or_default())
    }

    /// A new one: loom's objects live no longer than a run.
    #[cfg(ganger_loom)]
    fn take() -> Self {
        Self(Arc::default())
    }
}

#[cfg(not(ganger_loom))]
impl Drop for Lent {
    fn drop(&mut self) {
        let _ended = OWN.try_with(|own| own.set(Some(Arc::clone(&self.0))));
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_sync::driving;
    use std::future::{pending, ready};
    use std::panic::catch_unwind;

    // pins: I1
    #[test]
    fn a_thread_waits_for_nothing_in_a_driver() {
        driving(|| {
            assert_eq!(block_on(ready(7)), 7);
            assert!(catch_unwind(|| block_on(pending::<()>())).is_err());
            assert!(catch_unwind(|| block_on_for(Duration::MAX, pending::<()>())).is_err());
        });
        assert_eq!(block_on_for(Duration::ZERO, pending::<()>()), None);
    }
}
