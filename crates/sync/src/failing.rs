//! Whether the values that this thread drops belong to a failed process.
//!
//! **Problem.** A lock whose owner has failed is marked when its guard is dropped. The guard sees
//! that its thread unwinds. But it does not see that its process failed before, because a panic has
//! been contained. Nor does it see that the unwinding belongs to another owner: a dropped guard
//! wakes waiters, and a wake-up may poll their futures on this thread.
//!
//! **Protocol.** A thread drops the values of a failed process inside [`within`]. A wake-up polls a
//! future of another process inside [`apart`].

use crate::scoped;
use std::cell::Cell;
use std::thread::panicking;

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Plain) };
}

#[derive(Clone, Copy)]
enum State {
    /// The code fails if the thread unwinds.
    Plain,
    Fails,
    /// The thread unwinds, but the code called by `apart` has not failed.
    Apart,
}

/// Returns whether the values that this thread drops now belong to a failed process.
#[inline]
#[must_use]
pub fn is_failing() -> bool {
    match STATE.get() {
        State::Plain => panicking(),
        State::Fails => true,
        State::Apart => false,
    }
}

/// Calls `f`, which drops the values of a process; `has_failed` tells how the process has ended.
#[inline]
pub fn within<R>(has_failed: bool, f: impl FnOnce() -> R) -> R {
    if has_failed {
        scoped(&STATE, State::Fails, f)
    } else {
        f()
    }
}

/// Calls `f`, which is unrelated to a failure on this thread. While the thread unwinds, a panic in
/// `f` does not count as a failure until `f` has returned.
#[inline]
pub fn apart<R>(f: impl FnOnce() -> R) -> R {
    let state = if panicking() {
        State::Apart
    } else {
        State::Plain
    };
    scoped(&STATE, state, f)
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Calls `f` while the thread unwinds.
    fn while_unwinding(f: impl FnOnce()) {
        struct Calls<F: FnOnce()>(Option<F>);
        impl<F: FnOnce()> Drop for Calls<F> {
            fn drop(&mut self) {
                self.0.take().unwrap()();
            }
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _calls = Calls(Some(f));
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
    }

    #[test]
    fn what_is_apart_fails_by_itself_alone() {
        let seen = || [is_failing(), within(true, is_failing), apart(is_failing)];
        assert_eq!(seen(), [false, true, false]);
        within(true, || assert_eq!(seen(), [true, true, false]));
        while_unwinding(|| assert_eq!(seen(), [true, true, false]));
        while_unwinding(|| {
            apart(|| {
                assert_eq!(seen(), [false, true, false]);
                within(true, || assert_eq!(seen(), [true, true, false]));
            });
        });
        // Its own panic, on a thread that did not unwind before.
        within(true, || {
            apart(|| while_unwinding(|| assert!(is_failing())));
        });
        within(false, || assert_eq!(seen(), [false, true, false]));
        // Also after a panic.
        let panicked = catch_unwind(|| within(true, || panic!("on purpose")));
        assert!(panicked.is_err() && !is_failing());
    }
}
