//! A lock around a value, with a single owner at a time. [`word`] has the rule for the next owner.

use crate::blocking::block_on;
use crate::mark::{Mark, MarkedBy};
use ganger_sync::cell::UnsafeCell;
use ganger_wait::watch;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult};
use std::task::{Context, Poll};
use word::{Wait, Word};

#[cfg(test)]
mod loom_mutex;
mod word;

/// A lock around a value, for processes, tasks and threads. Unfair at first; handed over in order
/// after a waiter has waited for a millisecond.
///
/// Its guard may go to another thread, and be kept from step to step. An owner that fails under the
/// lock leaves it *marked*: until [`clear_poison`](Self::clear_poison) each next owner gets a
/// [`PoisonError`] with the guard inside. A guard that its code drops itself leaves no mark, even
/// if a task drops it to return an error.
///
/// The guard of a yield, and a restart in place, mark as well. No mark comes from an end by `done`,
/// a cancellation, the failure of another process that wakes the owner, a guard that a thread takes
/// and drops while it unwinds or drops a failed process's values, or a yield that panics in an
/// unwinding thread's poll. Yields of a failed or upgraded incarnation go on, and keep their
/// guards.
///
/// Await or drop a wait that was begun. A kept wait that is not polled keeps its place, and the
/// waiters behind it wait.
///
/// ```
/// use ganger_lock::Mutex;
///
/// let account = Mutex::new(100);
/// *account.lock_blocking().unwrap() += 20;
/// assert_eq!(account.into_inner().unwrap(), 120);
/// ```
pub struct Mutex<T> {
    word: Word,
    mark: Mark,
    value: UnsafeCell<T>,
}

// SAFETY: only the guard reaches the value, and a mutex has a single guard at a time; `Word` orders
// an owner's accesses before the next owner's.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: it goes with its value; loom's cell just does not say so.
unsafe impl<T: Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    /// Creates a free lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            word: Word::new(),
            mark: Mark::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock. A dropped wait passes its turn on.
    ///
    /// # Errors
    /// [`PoisonError`], with the guard inside, when an earlier owner has failed.
    #[inline]
    pub fn lock(&self) -> Lock<&Self, T> {
        Lock::new(self)
    }

    /// Locks as [`lock`](Self::lock) does; the guard keeps the lock alive, for the state of a
    /// process and for yields.
    ///
    /// ```
    /// use ganger_lock::{Locked, Mutex, Until};
    /// use ganger_proc_api::{BoxError, Event, process_fn};
    /// use ganger_sched::Scheduler;
    /// use std::sync::Arc;
    ///
    /// let account = Arc::new(Mutex::new(100));
    /// let shared = Arc::clone(&account);
    /// let scheduler = Scheduler::start_default()?;
    /// let process = scheduler.spawn(process_fn(move |_, events, out| {
    ///     match events.next() {
    ///         None => _ = out.ask(Until::new(Arc::clone(&shared).lock_owned()), 1),
    ///         Some(Event::Completion(it)) => {
    ///             let mut balance = it.take::<Locked<i32>>()??;
    ///             *balance += 20;
    ///             out.done(());
    ///         }
    ///         Some(_) => {}
    ///     }
    ///     Ok(())
    /// }))?;
    /// assert!(process.wait().is_done());
    /// assert_eq!(*account.lock_blocking().unwrap(), 120);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn lock_owned(self: Arc<Self>) -> Lock<Arc<Self>, T> {
        Lock::new(self)
    }

    /// Blocks this thread until it has the lock. Not for steps: see
    /// [`Context::blocking`](ganger_proc_api::Context::blocking).
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    #[inline]
    pub fn lock_blocking(&self) -> LockResult<MutexGuard<'_, T>> {
        if self.word.try_lock() {
            return Guard::new(self);
        }
        block_on("a lock that waits", "`lock`", self.lock())
    }

    /// Takes the lock, if it is free, and not about to be handed to a waiter. Never blocks.
    ///
    /// # Errors
    /// [`TryLockError::WouldBlock`] when it is not; [`TryLockError::Poisoned`], with the guard
    /// inside, as [`lock`](Self::lock).
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if self.word.try_lock() {
            Ok(Guard::new(self)?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Tries as [`try_lock`](Self::try_lock) does; the guard keeps the lock alive.
    ///
    /// # Errors
    /// As [`try_lock`](Self::try_lock).
    pub fn try_lock_owned(self: Arc<Self>) -> TryLockResult<OwnedMutexGuard<T>> {
        if self.word.try_lock() {
            Ok(Guard::new(self)?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Returns whether an owner has failed while it had the lock.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.mark.is_set()
    }

    /// Marks the value as right again: the next owners are told of no failure.
    pub fn clear_poison(&self) {
        self.mark.clear();
    }

    /// Returns the value, without a lock: the caller has it alone.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let is_marked = self.mark.is_set();
        // SAFETY: `&mut self` is the only reference to the lock.
        let value = self.value.with_mut(|value| unsafe { &mut *value });
        if is_marked {
            return Err(PoisonError::new(value));
        }
        Ok(value)
    }

    /// Returns the value.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn into_inner(self) -> LockResult<T> {
        let is_marked = self.mark.is_set();
        let value = self.value.into_inner();
        if is_marked {
            return Err(PoisonError::new(value));
        }
        Ok(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex")
            .field("is_locked", &self.word.is_locked())
            .field("is_poisoned", &self.is_poisoned())
            .finish_non_exhaustive()
    }
}

/// Waits for a [`Mutex`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Lock<L: Deref<Target = Mutex<T>>, T> {
    /// None when it has been taken.
    mutex: Option<L>,
    wait: Option<Wait>,
}

impl<L: Deref<Target = Mutex<T>>, T> Lock<L, T> {
    fn new(mutex: L) -> Self {
        let mutex = Some(mutex);
        Self { mutex, wait: None }
    }
}

impl<L: Deref<Target = Mutex<T>>, T> Unpin for Lock<L, T> {}

/// # Panics
/// Polling it again after it was ready panics.
impl<L: Deref<Target = Mutex<T>>, T> Future for Lock<L, T> {
    type Output = LockResult<Guard<L, T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(mutex) = &this.mutex else {
            panic!("a wait for a lock is polled after it was ready")
        };
        let word = &mutex.word;
        if this.wait.is_none() && !word.try_lock() {
            this.wait = word.begin();
        }
        if let Some(wait) = &mut this.wait {
            if word.poll(wait, context.waker()).is_pending() {
                return Poll::Pending;
            }
            this.wait = None;
        }
        match this.mutex.take() {
            Some(mutex) => Poll::Ready(Guard::new(mutex)),
            None => unreachable!("it was there"),
        }
    }
}

impl<L: Deref<Target = Mutex<T>>, T> Drop for Lock<L, T> {
    fn drop(&mut self) {
        if let (Some(mutex), Some(wait)) = (&self.mutex, &self.wait) {
            mutex.word.give_up(wait);
        }
    }
}

impl<L: Deref<Target = Mutex<T>>, T> fmt::Debug for Lock<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// The answer to a yield that locks: see [`Mutex::lock_owned`].
pub type Locked<T> = LockResult<OwnedMutexGuard<T>>;

/// Has a [`Mutex`], by reference.
pub type MutexGuard<'a, T> = Guard<&'a Mutex<T>, T>;

/// Has a [`Mutex`], and keeps it alive.
pub type OwnedMutexGuard<T> = Guard<Arc<Mutex<T>>, T>;

/// Has a [`Mutex`] until it is dropped, and leads to its value.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct Guard<L: Deref<Target = Mutex<T>>, T> {
    mutex: L,
    by: MarkedBy,
    /// Makes the guard `Sync` only if the value is.
    value: PhantomData<T>,
}

impl<L: Deref<Target = Mutex<T>>, T> Guard<L, T> {
    #[inline]
    fn new(mutex: L) -> LockResult<Self> {
        let is_marked = mutex.mark.is_set();
        watch::took(|| mutex.word.thing());
        let this = Self {
            mutex,
            by: MarkedBy::new(),
            value: PhantomData,
        };
        if is_marked {
            return Err(PoisonError::new(this));
        }
        Ok(this)
    }

    /// Returns the guard's lock.
    #[must_use]
    pub fn mutex(this: &Self) -> &L {
        &this.mutex
    }
}

impl<L: Deref<Target = Mutex<T>>, T> Deref for Guard<L, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only guard, and it is borrowed for as long as the value.
        self.mutex.value.with(|value| unsafe { &*value })
    }
}

impl<L: Deref<Target = Mutex<T>>, T> DerefMut for Guard<L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only guard, and it is borrowed for as long as the value, uniquely.
        self.mutex.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<L: Deref<Target = Mutex<T>>, T> Drop for Guard<L, T> {
    #[inline]
    fn drop(&mut self) {
        self.by.set(&self.mutex.mark);
        watch::gave(|| self.mutex.word.thing());
        self.mutex.word.unlock();
    }
}

impl<L: Deref<Target = Mutex<T>>, T: fmt::Debug> fmt::Debug for Guard<L, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
