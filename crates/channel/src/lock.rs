//! The lock around the state of a channel: a `Mutex`, and the state beside it.
//!
//! **Problem.** A select that begins to wait takes the locks of all its channels, whose states have
//! different types. Guards of different types can't be kept in one list.
//!
//! **Rejected.** A word on which threads spin and yield: its unlock is cheaper, but the system may
//! suspend the thread with the lock, and the others then use up their time slices.
//!
//! **Protocol.** A thread has the lock while it has a guard of the mutex, which guards `()`. So a
//! select keeps the guards of all its channels in one list. A thread that takes several locks takes
//! them in the order of their addresses, so that waiting threads form no circle.
//!
//! No user's code runs under the lock.

use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use std::ops::{Deref, DerefMut};

/// The mutex of a lock, without the guarded value.
pub(crate) type RawLock = Mutex<()>;

/// Holds a [`RawLock`].
pub(crate) type RawGuard<'a> = MutexGuard<'a, ()>;

/// A value with a lock.
#[derive(Debug)]
pub(crate) struct Lock<S> {
    raw: RawLock,
    value: UnsafeCell<S>,
}

// SAFETY: only the thread with the lock reaches the value, so the value moves from thread to
// thread.
unsafe impl<S: Send> Sync for Lock<S> {}

impl<S> Lock<S> {
    pub(crate) fn new(value: S) -> Self {
        Self {
            raw: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks; blocks while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, S> {
        Guard {
            lock: self,
            _held: lock(&self.raw),
        }
    }

    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }

    /// Returns a guard of a lock that this thread holds by its [`raw`](Self::raw) mutex.
    ///
    /// # Safety
    /// This thread holds the mutex while the guard exists, and has no other guard of this lock.
    pub(crate) unsafe fn locked(&self) -> Guard<'_, S, ()> {
        Guard {
            lock: self,
            _held: (),
        }
    }
}

/// Unlocks when dropped, if it holds the mutex itself.
#[must_use = "it unlocks at once when it is dropped"]
pub(crate) struct Guard<'a, S, H = RawGuard<'a>> {
    lock: &'a Lock<S>,
    _held: H,
}

impl<S, H> Deref for Guard<'_, S, H> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        // SAFETY: this thread has the lock until the guard is dropped, and the borrow of the guard
        // prevents a mutable access meanwhile.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<S, H> DerefMut for Guard<'_, S, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        // SAFETY: this thread has the lock until the guard is dropped, and the guard is borrowed
        // mutably.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}
