//! A lock that nobody waits for: who finds it taken does something else.
//!
//! **Problem.** What a few threads share, and each of them can do without, is to cost one read-modify-write, and a
//! thread that is suspended while it has the lock is to stop nobody.
//!
//! **Rejected.** `Mutex::try_lock` of the standard library: to unlock takes a read-modify-write as well, for those
//! who might wait.
//!
//! **Why it is exclusive.** One of those who exchange `false` for `true` succeeds, until it stores `false` again; that
//! store is a release, and the exchange that reads it an acquire.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;

#[derive(Default)]
pub(crate) struct TryLock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: who has the lock is the only one that gets at the value, which goes from one thread to another so.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// Calls `f` with the value, or gives it back when somebody has the lock. O(1) besides; never blocks.
    pub(crate) fn try_with<R, F: FnOnce(&mut T) -> R>(&self, f: F) -> Result<R, F> {
        // Ordering: Acquire pairs with the Release in `Release`: what the one before did to the value is seen.
        // Relaxed where it is held: nothing is read then.
        let change =
            self.is_held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if change.is_err() {
            return Err(f);
        }
        let _release = Release(&self.is_held);
        // SAFETY: it was `false`, and was exchanged for `true`: nobody else gets at the value until `Release` is dropped.
        Ok(self.value.with_mut(|value| f(unsafe { &mut *value })))
    }
}

/// Unlocks, also when the call panics.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        // Ordering: Release pairs with the Acquire in `try_with`.
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn who_finds_it_taken_gets_the_call_back() {
        let lock = TryLock::<u32>::default();
        let inner = lock.try_with(|outer| {
            *outer += 1;
            lock.try_with(|_| "never").err().is_some()
        });
        assert_eq!(inner.ok(), Some(true));
        assert_eq!(lock.try_with(|value| *value).ok(), Some(1));
    }

    #[test]
    fn a_call_that_panics_unlocks_it() {
        let lock = TryLock::<u32>::default();
        let call = || lock.try_with(|_| panic!("on purpose")).is_ok();
        assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
        assert_eq!(lock.try_with(|value| *value).ok(), Some(0));
    }
}
