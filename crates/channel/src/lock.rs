//! The lock around the state of a channel: a flag, and the state beside it.
//!
//! **Problem.** A select that begins to wait takes the locks of all its channels, whose states have
//! different types. Guards of different types can't be kept in one list. And several workers may
//! use a channel all the time: if they take the lock in turns, each critical section waits for the
//! state's cache lines, which takes longer than a hundred critical sections of one worker.
//!
//! **Rejected.** The standard library's mutex. A thread that waits for it tries again at once, and
//! the lock goes to and fro: 100 senders and 100 receivers on two workers took three to four times
//! as long. Its unlock is a read-modify-write, too, a fifth of a send and its receive. A lock whose
//! waiters yield their thread: while the system suspends the thread with the lock, the others use
//! up their time slices.
//!
//! **Protocol.** A thread takes the lock by an exchange, and gives it back by a store. A thread
//! that finds the lock taken pauses before each further try, longer each time, so that the holder
//! goes on with the lines in its cache. A thread that has paused in vain sleeps for a moment, for
//! the holder may be suspended. A select keeps the guards of all its channels in one list. A thread
//! that takes several locks takes them in the order of their addresses, so that waiting threads
//! form no circle.
//!
//! No user's code runs under the lock.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// How often a thread tries between two sleeps. The thread pauses twice as often before each
/// further try.
#[cfg(not(ganger_loom))]
const TRIES: u32 = 6;
/// How often it pauses before the first of them.
#[cfg(not(ganger_loom))]
const PAUSES: u32 = 32;
/// How long it sleeps.
#[cfg(not(ganger_loom))]
const SLEEP: std::time::Duration = std::time::Duration::from_micros(100);

/// A lock, without the guarded value.
#[derive(Debug)]
pub(crate) struct RawLock {
    is_taken: AtomicBool,
    /// How many locks were made before.
    #[cfg(ganger_loom)]
    number: usize,
}

impl RawLock {
    fn new() -> Self {
        #[cfg(ganger_loom)]
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        Self {
            is_taken: AtomicBool::new(false),
            // Ordering: Relaxed: a number alone.
            #[cfg(ganger_loom)]
            number: MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        }
    }

    /// Returns the place in the order in which a thread takes several locks: the address.
    #[cfg(not(ganger_loom))]
    pub(crate) fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Returns the place in the order in which a thread takes several locks. A model repeats runs,
    /// and the addresses differ from run to run.
    #[cfg(ganger_loom)]
    pub(crate) fn place(&self) -> usize {
        self.number
    }

    /// Locks; waits while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self) -> RawGuard<'_> {
        if !self.try_lock() {
            self.wait();
        }
        RawGuard(&self.is_taken)
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // Ordering: Acquire pairs with the Release of the last holder's unlock. A failure reads
        // nothing.
        self.is_taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Waits for the lock, and takes it.
    #[cold]
    #[cfg(not(ganger_loom))]
    fn wait(&self) {
        loop {
            for turn in 0..TRIES {
                (0..PAUSES << turn).for_each(|_| std::hint::spin_loop());
                // Ordering: Relaxed: the exchange decides. A load leaves the holder its cache line.
                if !self.is_taken.load(Ordering::Relaxed) && self.try_lock() {
                    return;
                }
            }
            std::thread::sleep(SLEEP);
        }
    }

    /// Waits for the lock in a model: another thread runs until it has changed something.
    #[cfg(ganger_loom)]
    fn wait(&self) {
        while !self.try_lock() {
            ganger_sync::thread::yield_now();
        }
    }
}

/// Holds a [`RawLock`].
#[must_use = "it unlocks at once when it is dropped"]
pub(crate) struct RawGuard<'a>(&'a AtomicBool);

impl Drop for RawGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release pairs with the Acquire in `RawLock::try_lock`.
        self.0.store(false, Ordering::Release);
    }
}

/// A value with a lock, which comes first: it is on the cache line of the value's first fields.
#[derive(Debug)]
#[repr(C)]
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
            raw: RawLock::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks; waits while another thread has the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, S> {
        Guard {
            lock: self,
            _held: self.raw.lock(),
        }
    }

    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }

    /// Returns a guard of a lock that this thread holds by its [`raw`](Self::raw) lock.
    ///
    /// # Safety
    /// This thread holds the raw lock while the guard exists, and has no other guard of this lock.
    pub(crate) unsafe fn locked(&self) -> Guard<'_, S, ()> {
        Guard {
            lock: self,
            _held: (),
        }
    }
}

/// Unlocks when dropped, if it holds the raw lock itself.
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

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    /// Holds the lock by the first thread for longer than the others pause, so the others sleep.
    #[test]
    fn threads_that_sleep_for_the_lock_get_it_one_at_a_time() {
        let lock = Lock::new(0_u32);
        let (begun, begins) = mpsc::channel();
        thread::scope(|scope| {
            let held = lock.lock();
            for _ in 0..4 {
                let (begun, lock) = (begun.clone(), &lock);
                scope.spawn(move || {
                    begun.send(()).expect("it is waited for");
                    for _ in 0..1_000 {
                        let mut value = lock.lock();
                        let before = *value;
                        std::hint::spin_loop();
                        *value = before + 1;
                    }
                });
            }
            assert!((0..4).all(|_| begins.recv().is_ok()));
            thread::sleep(20 * SLEEP);
            assert_eq!(*held, 0, "it is this thread's");
            drop(held);
        });
        assert_eq!(*lock.lock(), 4_000);
    }
}
