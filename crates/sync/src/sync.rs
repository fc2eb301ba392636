//! Locks and shared ownership: `std`'s, or loom's under `--cfg ganger_loom`.

#[cfg(ganger_loom)]
pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(ganger_loom))]
pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks `mutex`, whether or not a thread panicked while it held it.
///
/// For data left consistent by every critical section, even by a panicking one. Blocks until the
/// lock is free.
#[inline]
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
