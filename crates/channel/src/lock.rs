//! The lock around the state of a channel.
//!
//! **Problem.** Each send and each receive takes the lock of its channel for a few instructions. A
//! select that begins to wait takes the locks of all its channels, whose states have different
//! types.
//!
//! **Rejected.** `Mutex` of the standard library: its unlock takes a read-modify-write as well, and
//! guards of different types can't be kept in the same list.
//!
//! **Protocol.** A thread has the lock from its exchange of `false` for `true` until it stores
//! `false`. A thread that finds it taken checks again, and soon yields between its checks: the
//! holder may be suspended. A thread that takes several locks takes them in the order of their
//! addresses, so that waiting threads form no circle.
//!
//! No user's code runs under the lock.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::hint::spin_loop;
use std::ops::{Deref, DerefMut};

/// How often a thread checks before it yields.
#[cfg(not(ganger_loom))]
const LOOKS: u32 = 40;

/// The word of a lock, without the guarded value.
#[derive(Debug, Default)]
pub(crate) struct RawLock(AtomicBool);

impl RawLock {
    #[inline]
    pub(crate) fn lock(&self) {
        if !self.try_lock() {
            self.wait();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `unlock`: this thread sees the previous
        // holder's actions. Relaxed on failure: nothing is read then.
        self.0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self) {
        #[cfg(not(ganger_loom))]
        for _ in 0..LOOKS {
            spin_loop();
            // Ordering: Relaxed: only a check, after which `try_lock` acquires.
            if !self.0.load(Ordering::Relaxed) && self.try_lock() {
                return;
            }
        }
        while !self.try_lock() {
            #[cfg(not(ganger_loom))]
            std::thread::yield_now();
            #[cfg(ganger_loom)]
            spin_loop();
        }
    }

    /// Unlocks. The caller must have locked it.
    #[inline]
    pub(crate) fn unlock(&self) {
        // Ordering: Release pairs with the Acquire in `try_lock`.
        self.0.store(false, Ordering::Release);
    }
}

/// A value with a lock.
#[derive(Debug, Default)]
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
            raw: RawLock::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks; blocks while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, S> {
        self.raw.lock();
        Guard(self)
    }

    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }

    /// Returns a guard of a lock that this thread has locked by [`RawLock::lock`], and unlocks by
    /// [`RawLock::unlock`].
    ///
    /// # Safety
    /// This thread has locked [`raw`](Self::raw), keeps it locked while the guard exists, and has
    /// no other guard.
    pub(crate) unsafe fn locked(&self) -> std::mem::ManuallyDrop<Guard<'_, S>> {
        std::mem::ManuallyDrop::new(Guard(self))
    }
}

/// Unlocks when dropped.
#[must_use = "it unlocks at once when it is dropped"]
pub(crate) struct Guard<'a, S>(&'a Lock<S>);

impl<S> Deref for Guard<'_, S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        // SAFETY: this thread has the lock until the guard is dropped, and the borrow of the guard
        // prevents a mutable access meanwhile.
        self.0.value.with(|value| unsafe { &*value })
    }
}

impl<S> DerefMut for Guard<'_, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        // SAFETY: this thread has the lock until the guard is dropped, and the guard is borrowed
        // mutably.
        self.0.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<S> Drop for Guard<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.0.raw.unlock();
    }
}
