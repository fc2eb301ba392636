//! Whether what this thread drops belongs to something that fails.
//!
//! **Problem.** A lock whose owner has failed is marked when its guard is dropped. The guard sees
//! that its thread unwinds. It does not see that its process has failed before: the panic, if there
//! was one, has been contained. Nor does it see that the unwinding is none of its owner's: a guard
//! that is dropped wakes others, and such a wake-up may poll their futures on this thread.
//!
//! **Protocol.** A thread that drops what a failed process has does so [`within`] this. A wake-up
//! that polls a future of another process does so [`apart`].

use std::cell::Cell;
use std::thread::panicking;

thread_local! {
    static STATE: Cell<State> = const { Cell::new(State::Plain) };
}

#[derive(Clone, Copy)]
enum State {
    /// It fails when the thread unwinds.
    Plain,
    Fails,
    /// The thread unwinds, which is not the failure of what is polled meanwhile.
    Apart,
}

/// Whether what this thread drops now belongs to something that fails.
#[inline]
#[must_use]
pub fn is_failing() -> bool {
    match STATE.get() {
        State::Plain => panicking(),
        State::Fails => true,
        State::Apart => false,
    }
}

/// Calls `f`, which drops what a process has; `has_failed` says how that has ended.
#[inline]
pub fn within<R>(has_failed: bool, f: impl FnOnce() -> R) -> R {
    if has_failed {
        with(State::Fails, f)
    } else {
        f()
    }
}

/// Calls `f`, which has no part in what fails on this thread. While the thread unwinds, a panic in
/// `f` does not count as a failure until `f` has returned.
#[inline]
pub fn apart<R>(f: impl FnOnce() -> R) -> R {
    let state = if panicking() {
        State::Apart
    } else {
        State::Plain
    };
    with(state, f)
}

#[inline]
fn with<R>(state: State, f: impl FnOnce() -> R) -> R {
    struct PutBack(State);
    impl Drop for PutBack {
        fn drop(&mut self) {
            STATE.set(self.0);
        }
    }
    let _put_back = PutBack(STATE.replace(state));
    f()
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
        // Its own panic, while the thread did not unwind before.
        within(true, || {
            apart(|| while_unwinding(|| assert!(is_failing())));
        });
        within(false, || assert_eq!(seen(), [false, true, false]));
        // Also after a panic.
        let panicked = catch_unwind(|| within(true, || panic!("on purpose")));
        assert!(panicked.is_err() && !is_failing());
    }
}
