//! Calls of foreign code whose panic does not concern the caller.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`. A panic is reported by the panic hook, and goes no further.
pub(crate) fn contain(f: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
        // Its destructor might panic as well.
        mem::forget(panic);
    }
}
