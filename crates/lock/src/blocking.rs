//! The waits of threads.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Blocks this thread until the wait is over.
///
/// # Panics
/// In a simulation, if the wait is not over at once: its only thread would wait for itself. The
/// message says that `what` would wait, and that the caller should use `instead`.
#[track_caller]
pub(crate) fn block_on<F: Future>(what: &str, instead: &str, wait: F) -> F::Output {
    let mut wait = pin!(wait);
    if let Poll::Ready(output) = wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    // A blocking step has a spare thread in its place, so the step may wait.
    let _is_no_step = ganger_sched::internal::may_block(what, instead);
    ganger_wait::block_on(wait)
}
