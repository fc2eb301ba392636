//! Whether what this thread drops belongs to a process that has failed.
//!
//! A lock that such a process has held is marked when its guard is dropped. The guard can't see
//! that otherwise: the panic, if there was one, has been contained by then.

use std::cell::Cell;

thread_local! {
    static FAILING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread drops what a process has that failed.
pub(crate) fn is_failing() -> bool {
    FAILING.get()
}

/// Calls `f`, which drops what a process has; `has_failed` says how that has ended.
#[inline]
pub(crate) fn within<R>(has_failed: bool, f: impl FnOnce() -> R) -> R {
    struct PutBack(bool);
    impl Drop for PutBack {
        fn drop(&mut self) {
            FAILING.set(self.0);
        }
    }
    if !has_failed {
        return f();
    }
    let _put_back = PutBack(FAILING.replace(true));
    f()
}
