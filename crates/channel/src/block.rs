//! Blocks a thread on a future.

use std::time::Duration;

/// Blocks until the future is ready, or `timeout` has passed.
pub(crate) fn block_on<F: Future>(future: F, timeout: Option<Duration>) -> Option<F::Output> {
    match timeout {
        None => Some(ganger_wait::block_on(future)),
        Some(timeout) => ganger_wait::block_on_for(timeout, future),
    }
}
