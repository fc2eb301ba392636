//! Calls of users' code, whose panics end nothing of the node.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`. `None`: the call has panicked, and the panic hook has reported the panic.
pub(crate) fn contain<R>(f: impl FnOnce() -> R) -> Option<R> {
    let panic = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => return Some(result),
        Err(panic) => panic,
    };
    // A payload is a user's value: its destructor may panic as well, with another payload.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        mem::forget(second);
    }
    None
}
