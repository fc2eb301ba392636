//! A lock without waiting: a thread that finds the lock taken does other work.
//!
//! **Problem.** A few threads share a value, which none of them needs. Its use should cost a single
//! read-modify-write, and a thread suspended with the lock should stop no other thread.
//!
//! **Rejected.** `Mutex::try_lock` of the standard library: its unlock takes a read-modify-write as
//! well, for threads that might wait.
//!
//! **Why it is exclusive.** Of the threads that exchange `false` for `true` a single thread
//! succeeds, until it stores `false` again. This store is a release, and the exchange that reads it
//! an acquire.

use crate::atomic::{AtomicBool, Ordering};
use crate::cell::UnsafeCell;
use std::fmt;

/// A lock that a thread takes at once, or not at all.
///
/// ```
/// let lock = ganger_sync::TryLock::new(1);
/// assert!(lock.try_with(|value| *value += 1).is_ok());
/// ```
#[derive(Default)]
pub struct TryLock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread with the lock reaches the value, so the value moves from thread to
// thread.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// Creates an unlocked lock around a value.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            is_held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `f` with the value. O(1) except for `f`; never blocks. A panic in `f` unlocks it.
    ///
    /// # Errors
    /// Returns `f` if another call has the lock: on another thread, or around this call.
    pub fn try_with<R, F: FnOnce(&mut T) -> R>(&self, f: F) -> Result<R, F> {
        // Ordering: Acquire pairs with the Release in `Release`: this thread sees the previous
        // holder's changes of the value. Relaxed on failure: nothing is read then.
        let change =
            self.is_held
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if change.is_err() {
            return Err(f);
        }
        let _release = Release(&self.is_held);
        // SAFETY: this thread has exchanged `false` for `true`: no other thread reaches the value
        // until `Release` is dropped.
        Ok(self.value.with_mut(|value| f(unsafe { &mut *value })))
    }
}

impl<T> fmt::Debug for TryLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryLock").finish_non_exhaustive()
    }
}

/// Unlocks when dropped, also if the call panics.
struct Release<'a>(&'a AtomicBool);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        // Ordering: Release pairs with the Acquire in `try_with`.
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_caller_that_finds_it_taken_gets_the_call_back() {
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
