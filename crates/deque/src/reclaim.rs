//! Decides when a replaced ring may be freed.
//!
//! **Problem.** The owner replaces its ring while thieves may be copying out of the old one.
//!
//! **Rejected.**
//! - *Reference counts*: two more RMWs a steal, on a line shared by all thieves.
//! - *Keeping every ring until the end*: it takes as much memory again as the largest ring, and
//!   without bound if an owner replaces a ring by another of the same size (see `Worker::grow`).
//! - *The collector shared by all users of crossbeam-epoch*: in the middle of a push or a steal it
//!   runs deferred functions of other users, which may panic, or reach this same deque.
//!
//! **Protocol.** A thief pins the epoch, loads the pointer, and has finished with the ring before
//! it unpins. The owner stores the new pointer, and then retires the old pointer. The old ring is
//! freed once every thread pinned at this moment has unpinned. This crate has its own collector,
//! which only frees rings. While a thief is suspended in a copy, no ring is freed.
//!
//! crossbeam-epoch is opaque to loom. In models, retired rings are kept until the deque is dropped.
//! The models check the protocol of the deque; crossbeam's own tests check the epochs.

use ganger_sync::atomic::{AtomicPtr, Ordering};
use std::ptr::NonNull;

use backend::Retired;
pub(crate) use backend::{Guard, pin};

/// A pointer that one thread replaces and any thread follows.
pub(crate) struct Buffer<R> {
    /// The owner writes the pointer, thieves read it. Always from `Box::into_raw`.
    current: AtomicPtr<R>,
    retired: Retired<R>,
}

impl<R> Buffer<R> {
    pub(crate) fn new(first: Box<R>) -> Self {
        Self {
            current: AtomicPtr::new(Box::into_raw(first)),
            retired: Retired::new(),
        }
    }

    /// Returns the newest value visible to this thread.
    pub(crate) fn load<'g>(&self, _guard: &'g Guard) -> &'g R {
        // Ordering: Acquire pairs with the Release store in `replace`: the slots copied before by
        // the owner are visible.
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer comes from a box, which is freed only after all guards that may have
        // seen it are gone.
        unsafe { &*current }
    }

    /// Returns the newest value, for the owner, which alone replaces it.
    pub(crate) fn owned(&self) -> NonNull<R> {
        // Ordering: Relaxed, because the caller is the thread that stores.
        let current = self.current.load(Ordering::Relaxed);
        NonNull::new(current).expect("a box is not null")
    }

    /// Replaces the current value with `next`. The old value is freed when no thread can use it.
    ///
    /// # Safety
    /// Only the owner calls this, and it does not use the replaced value afterwards.
    pub(crate) unsafe fn replace(&self, next: Box<R>) {
        // Pinning comes first: if it panics, the value is unchanged.
        let guard = pin();
        let old = self.owned();
        // Ordering: Release pairs with the Acquire in `load`.
        self.current.store(Box::into_raw(next), Ordering::Release);
        // SAFETY: `old` comes from a box, new guards cannot reach it, and it is retired once,
        // because only the owner replaces.
        unsafe { self.retired.add(&guard, old) };
    }

    /// Frees replaced values that no thread uses any more.
    pub(crate) fn collect(&self) {
        self.retired.collect();
    }
}

impl<R> Drop for Buffer<R> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: no other thread follows the pointer. The pointer comes from a box.
        drop(unsafe { Box::from_raw(self.owned().as_ptr()) });
    }
}

#[cfg(not(ganger_loom))]
mod backend {
    use crate::counts::{Event, count};
    use crossbeam_epoch::{Collector, LocalHandle};
    use ganger_sync::atomic::{AtomicBool, Ordering};
    use std::marker::PhantomData;
    use std::ptr::NonNull;
    use std::sync::LazyLock;

    pub(crate) use crossbeam_epoch::Guard;

    static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

    thread_local! {
        static HANDLE: LocalHandle = COLLECTOR.register();
    }

    /// Keeps values that this thread loads from now on alive, until the guard is dropped.
    pub(crate) fn pin() -> Guard {
        count(Event::Pinned);
        let pinned = HANDLE.try_with(LocalHandle::pin);
        // In the destructor of another thread-local value this thread's handle may be gone.
        pinned.unwrap_or_else(|_| COLLECTOR.register().pin())
    }

    /// Hands retired values to the epoch.
    pub(crate) struct Retired<R> {
        /// Whether any value was retired. Only the owner uses it, and then the thread that drops
        /// the deque.
        any: AtomicBool,
        values: PhantomData<R>,
    }

    impl<R> Retired<R> {
        pub(crate) fn new() -> Self {
            Self {
                any: AtomicBool::new(false),
                values: PhantomData,
            }
        }

        /// Retires a value.
        ///
        /// # Safety
        /// `old` comes from a box, new guards cannot reach it, and it is added once.
        pub(crate) unsafe fn add(&self, guard: &Guard, old: NonNull<R>) {
            // Ordering: Relaxed, because only the owner reads it, or the last thread with the
            // deque.
            self.any.store(true, Ordering::Relaxed);
            // SAFETY: by the contract of this function. Freeing a ring touches no item, so any
            // thread may do it at any time.
            unsafe { guard.defer_unchecked(move || drop(Box::from_raw(old.as_ptr()))) };
            // A ring can be large, and this thread may not come here again for a long time.
            guard.flush();
        }

        /// Frees values that no thread uses any more. A ring is free after two advances of the
        /// epoch, and a third look frees it. The epoch advances when no thread is pinned in an
        /// older epoch.
        pub(crate) fn collect(&self) {
            // Ordering: Relaxed, because only the owner reads it, or the last thread with the
            // deque.
            if self.any.load(Ordering::Relaxed) {
                for _ in 0..3 {
                    pin().flush();
                }
            }
        }
    }

    impl<R> Drop for Retired<R> {
        fn drop(&mut self) {
            // A thief may have been in a steal when the last ring was replaced.
            self.collect();
        }
    }
}

#[cfg(ganger_loom)]
mod backend {
    use crate::counts::{Event, count};
    use std::ptr::NonNull;
    use std::sync::Mutex;

    /// Stands for a pinned epoch.
    pub(crate) struct Guard;

    pub(crate) fn pin() -> Guard {
        count(Event::Pinned);
        Guard
    }

    /// Keeps retired values until the end. The lock is `std`'s, and not part of the model.
    pub(crate) struct Retired<R>(Mutex<Vec<NonNull<R>>>);

    impl<R> Retired<R> {
        pub(crate) fn new() -> Self {
            Self(Mutex::new(Vec::new()))
        }

        /// Retires a value.
        ///
        /// # Safety
        /// `old` comes from a box and is added once.
        pub(crate) unsafe fn add(&self, _guard: &Guard, old: NonNull<R>) {
            self.0
                .lock()
                .expect("no thread panics with the lock")
                .push(old);
        }

        /// Frees nothing: retired values are kept.
        #[expect(clippy::unused_self, reason = "as the other backend's")]
        pub(crate) fn collect(&self) {}
    }

    impl<R> Drop for Retired<R> {
        fn drop(&mut self) {
            for old in self
                .0
                .get_mut()
                .expect("no thread panics with the lock")
                .drain(..)
            {
                // SAFETY: the value comes from a box and was added once. The deque is gone, so no
                // thread uses it.
                drop(unsafe { Box::from_raw(old.as_ptr()) });
            }
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};
    use std::thread;

    const MOST_TRIES: u32 = 1_000;

    /// Enough turns for any epoch to pass, few enough to fail a test.
    const MOST_TURNS: u32 = 10_000_000;

    #[test]
    fn a_replaced_value_lives_as_long_as_a_guard_and_no_longer() {
        let first = Arc::new(());
        let buffer = Buffer::new(Box::new(Arc::clone(&first)));
        let guard = pin();
        let seen = buffer.load(&guard);
        // SAFETY: this thread is the owner. The guard protects the value that it uses later.
        unsafe { buffer.replace(Box::new(Arc::default())) };
        for _ in 0..1_000 {
            pin().flush();
        }
        assert!(Arc::ptr_eq(seen, &first));
        assert_eq!(Arc::strong_count(&first), 2);
        drop(guard);
        // Other tests of this process may be pinned for a moment.
        let freed = (0..MOST_TURNS).any(|_| {
            pin().flush();
            Arc::strong_count(&first) == 1
        });
        assert!(freed);
    }

    /// Checks that the value is freed although no thread steals or replaces a value afterwards.
    #[test]
    fn what_was_in_use_when_it_was_replaced_goes_with_the_buffer() {
        let is_freed = || {
            let first = Arc::new(());
            let buffer = Buffer::new(Box::new(Arc::clone(&first)));
            let (pinned, replaced) = (&Barrier::new(2), &Barrier::new(2));
            thread::scope(|scope| {
                scope.spawn(move || {
                    let _guard = pin();
                    pinned.wait();
                    replaced.wait();
                });
                pinned.wait();
                // SAFETY: this thread is the owner, and uses no value.
                unsafe { buffer.replace(Box::new(Arc::default())) };
                buffer.collect();
                assert_eq!(Arc::strong_count(&first), 2, "it is in use");
                replaced.wait();
            });
            drop(buffer);
            Arc::strong_count(&first) == 1
        };
        // Other tests of this process may be pinned for a moment.
        assert!((0..MOST_TRIES).any(|_| is_freed()));
    }

    #[test]
    fn the_last_value_goes_with_the_buffer() {
        let last = Arc::new(());
        drop(Buffer::new(Box::new(Arc::clone(&last))));
        assert_eq!(Arc::strong_count(&last), 1);
    }
}
