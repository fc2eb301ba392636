//! Blocks a thread on a future, or on a wait of this crate.

use ganger_sync::{LentParker, refuse_to_wait_in_driver};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Blocks this thread until the future is ready.
///
/// Must not be called from a step outside of `Context::blocking`: the step's worker would block.
///
/// # Panics
/// If it would block a thread that drives a scheduler, as in a task of `tokio::spawn`: for ever.
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

/// Blocks as [`block_on`] does, but for at most `time`. Then drops the future, and returns `None`.
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
    let parker = LentParker::take();
    let waker = Waker::from(Arc::clone(&parker));
    loop {
        if let Poll::Ready(output) = poll(&waker) {
            return Some(output);
        }
        refuse_to_wait_in_driver();
        match until {
            // A time beyond the range of `Instant` never comes.
            None | Some(None) => parker.park(),
            Some(Some(until)) => {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                parker.park_timeout(left);
            }
        }
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
