//! A lock around a value for many readers or a single writer.
//!
//! **Protocol.** A waiting writer stops new readers. A writer's unlock lets all waiting readers in
//! before the next writer. So neither side waits for ever. The lock is always handed over: a woken
//! waiter has the lock.
//!
//! A process that takes a second read lock, while a writer waits in between, waits for itself.

use crate::blocking::block_on;
use crate::mark::{Mark, MarkedBy};
use crate::seat::Seat;
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::watch::{self, Thing};
use ganger_wait::{Left, WaitQueue, WakeList};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::{Arc, LockResult, PoisonError, TryLockError, TryLockResult};
use std::task::{Context, Poll};

/// A lock around a value, for many readers or a single writer.
///
/// A writer that fails under the lock marks it, as with [`Mutex`](crate::Mutex). Readers change
/// nothing, and leave no mark.
///
/// ```
/// use ganger_lock::RwLock;
///
/// let prices = RwLock::new(vec![1, 2]);
/// prices.write_blocking().unwrap().push(3);
/// let (one, other) = (prices.read_blocking().unwrap(), prices.read_blocking().unwrap());
/// assert_eq!((one.len(), other.len()), (3, 3));
/// ```
pub struct RwLock<T> {
    state: Mutex<State>,
    mark: Mark,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by a single writer or by readers, as `State` says; its lock orders
// them. Several threads read it at a time, so `T` must be `Sync`.
unsafe impl<T: Send + Sync> Sync for RwLock<T> {}
// SAFETY: it goes with its value; loom's cell just does not say so.
unsafe impl<T: Send> Send for RwLock<T> {}

#[derive(Default)]
struct State {
    /// How many readers have it.
    readers: usize,
    /// A writer has it.
    is_written: bool,
    waiting_readers: WaitQueue<()>,
    waiting_writers: WaitQueue<()>,
}

impl State {
    fn take(&mut self, access: Access) -> bool {
        let is_free = !self.is_written && self.waiting_writers.is_empty();
        match access {
            Access::Read if is_free => self.readers += 1,
            Access::Write if is_free && self.readers == 0 => self.is_written = true,
            _ => return false,
        }
        true
    }

    fn queue(&mut self, access: Access) -> &mut WaitQueue<()> {
        match access {
            Access::Read => &mut self.waiting_readers,
            Access::Write => &mut self.waiting_writers,
        }
    }

    /// Ends the access of a reader or writer.
    fn give_back(&mut self, access: Access, wakes: &mut WakeList) {
        match access {
            Access::Read => self.readers -= 1,
            Access::Write => {
                self.is_written = false;
                self.let_readers_in(wakes);
            }
        }
        self.serve(wakes);
    }

    fn let_readers_in(&mut self, wakes: &mut WakeList) {
        while let Some(entry) = self.waiting_readers.pop() {
            self.readers += 1;
            wakes.push(entry.waiter);
        }
    }

    /// Gives the lock to the next writer, if it is free; to the readers, if no writer waits.
    fn serve(&mut self, wakes: &mut WakeList) {
        if self.is_written {
            return;
        }
        if self.readers == 0
            && let Some(entry) = self.waiting_writers.pop()
        {
            self.is_written = true;
            wakes.push(entry.waiter);
        } else if self.waiting_writers.is_empty() {
            self.let_readers_in(wakes);
        }
    }
}

/// The kind of access to the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The access of a guard: [`Reads`] or [`Writes`].
#[allow(private_interfaces, reason = "no other crate implements it")]
pub trait Mode: 'static {
    #[doc(hidden)]
    const ACCESS: Access;
}

/// The mode of a reading guard.
#[derive(Debug)]
pub struct Reads(());

/// The mode of a guard that reads and writes.
#[derive(Debug)]
pub struct Writes(());

#[allow(private_interfaces, reason = "no other crate implements it")]
impl Mode for Reads {
    const ACCESS: Access = Access::Read;
}

#[allow(private_interfaces, reason = "no other crate implements it")]
impl Mode for Writes {
    const ACCESS: Access = Access::Write;
}

impl<T> RwLock<T> {
    /// Creates a lock around `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            state: Mutex::new(State::default()),
            mark: Mark::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for read access. A dropped wait passes its turn on.
    ///
    /// # Errors
    /// [`PoisonError`], with the guard inside, when a writer has failed.
    pub fn read(&self) -> RwWait<&Self, T, Reads> {
        RwWait::new(self)
    }

    /// Waits for write access. A dropped wait passes its turn on.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write(&self) -> RwWait<&Self, T, Writes> {
        RwWait::new(self)
    }

    /// Reads as [`read`](Self::read) does; the guard keeps the lock alive.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_owned(self: Arc<Self>) -> RwWait<Arc<Self>, T, Reads> {
        RwWait::new(self)
    }

    /// Writes as [`write`](Self::write) does; the guard keeps the lock alive.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_owned(self: Arc<Self>) -> RwWait<Arc<Self>, T, Writes> {
        RwWait::new(self)
    }

    /// Blocks this thread until it may read. Not for steps.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_blocking(&self) -> LockResult<ReadGuard<'_, T>> {
        block_on("a lock that waits", "`read`", self.read())
    }

    /// Blocks this thread until it may write. Not for steps.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn write_blocking(&self) -> LockResult<WriteGuard<'_, T>> {
        block_on("a lock that waits", "`write`", self.write())
    }

    /// Reads, if no writer has it or waits for it. Never blocks.
    ///
    /// # Errors
    /// [`TryLockError`].
    pub fn try_read(&self) -> TryLockResult<ReadGuard<'_, T>> {
        Self::try_take(self)
    }

    /// Writes, if the lock is free. Never blocks.
    ///
    /// # Errors
    /// [`TryLockError`].
    pub fn try_write(&self) -> TryLockResult<WriteGuard<'_, T>> {
        Self::try_take(self)
    }

    /// Tries as [`try_read`](Self::try_read) does; the guard keeps the lock alive.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_owned(self: Arc<Self>) -> TryLockResult<RwGuard<Arc<Self>, T, Reads>> {
        Self::try_take(self)
    }

    /// Tries as [`try_write`](Self::try_write) does; the guard keeps the lock alive.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_owned(self: Arc<Self>) -> TryLockResult<RwGuard<Arc<Self>, T, Writes>> {
        Self::try_take(self)
    }

    fn try_take<L: Deref<Target = Self>, M: Mode>(this: L) -> TryLockResult<RwGuard<L, T, M>> {
        let is_taken = lock(&this.state).take(M::ACCESS);
        if is_taken {
            Ok(RwGuard::new(this)?)
        } else {
            Err(TryLockError::WouldBlock)
        }
    }

    /// Returns the name of the lock in a report of a deadlock.
    fn thing(&self) -> Thing {
        Thing::of("read-write lock", self)
    }

    fn give_back(&self, access: Access) {
        watch::gave(|| self.thing());
        let mut wakes = WakeList::new();
        lock(&self.state).give_back(access, &mut wakes);
    }

    /// Returns whether a writer has failed while it had the lock.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.mark.is_set()
    }

    /// Removes the mark: the value is right again.
    pub fn clear_poison(&self) {
        self.mark.clear();
    }

    /// Returns the value, without a lock: the caller has it alone.
    ///
    /// # Errors
    /// As [`read`](Self::read).
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
    /// As [`read`](Self::read).
    pub fn into_inner(self) -> LockResult<T> {
        let is_marked = self.mark.is_set();
        let value = self.value.into_inner();
        if is_marked {
            return Err(PoisonError::new(value));
        }
        Ok(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("RwLock")
            .field("readers", &state.readers)
            .field("is_written", &state.is_written)
            .finish_non_exhaustive()
    }
}

/// Waits for a [`RwLock`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct RwWait<L: Deref<Target = RwLock<T>>, T, M: Mode> {
    /// None when it has been taken.
    lock: Option<L>,
    seat: Option<Seat>,
    mode: PhantomData<fn() -> M>,
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> RwWait<L, T, M> {
    fn new(lock: L) -> Self {
        Self {
            lock: Some(lock),
            seat: None,
            mode: PhantomData,
        }
    }
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> Unpin for RwWait<L, T, M> {}

/// # Panics
/// Polling it again after it was ready panics.
impl<L: Deref<Target = RwLock<T>>, T, M: Mode> Future for RwWait<L, T, M> {
    type Output = LockResult<RwGuard<L, T, M>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(its) = &this.lock else {
            panic!("a wait for a lock is polled after it was ready")
        };
        if this.seat.is_none() {
            let mut state = lock(&its.state);
            if !state.take(M::ACCESS) {
                let seat = Seat::back(state.queue(M::ACCESS), 0, (), its.thing());
                this.seat = Some(seat);
            }
        }
        if let Some(seat) = &this.seat {
            if seat.poll(context).is_pending() {
                return Poll::Pending;
            }
            this.seat = None;
        }
        match this.lock.take() {
            Some(lock) => Poll::Ready(RwGuard::new(lock)),
            None => unreachable!("it was there"),
        }
    }
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> Drop for RwWait<L, T, M> {
    fn drop(&mut self) {
        let (Some(its), Some(seat)) = (&self.lock, &self.seat) else {
            return;
        };
        let mut wakes = WakeList::new();
        let mut state = lock(&its.state);
        match seat.leave(state.queue(M::ACCESS)) {
            Left::Claimed(_) => state.give_back(M::ACCESS, &mut wakes),
            // A writer may have kept readers waiting.
            Left::InTime => state.serve(&mut wakes),
        }
    }
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> fmt::Debug for RwWait<L, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwWait").field(&M::ACCESS).finish()
    }
}

/// Reads the value of a [`RwLock`], by reference.
pub type ReadGuard<'a, T> = RwGuard<&'a RwLock<T>, T, Reads>;

/// Reads and writes the value of a [`RwLock`], by reference.
pub type WriteGuard<'a, T> = RwGuard<&'a RwLock<T>, T, Writes>;

/// Has a [`RwLock`] until it is dropped, to read or to write the value.
#[must_use = "a guard that is dropped unlocks at once"]
pub struct RwGuard<L: Deref<Target = RwLock<T>>, T, M: Mode> {
    lock: L,
    by: MarkedBy,
    /// Makes the guard `Sync` only if the value is.
    value: PhantomData<(T, fn() -> M)>,
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> RwGuard<L, T, M> {
    fn new(lock: L) -> LockResult<Self> {
        watch::took(|| lock.thing());
        let is_marked = lock.mark.is_set();
        let this = Self {
            lock,
            by: MarkedBy::new(),
            value: PhantomData,
        };
        if is_marked {
            return Err(PoisonError::new(this));
        }
        Ok(this)
    }
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> Deref for RwGuard<L, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: no other guard writes while this guard lives.
        self.lock.value.with(|value| unsafe { &*value })
    }
}

impl<L: Deref<Target = RwLock<T>>, T> DerefMut for RwGuard<L, T, Writes> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a writing guard is the only guard, and it is borrowed for as long as the value,
        // uniquely.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<L: Deref<Target = RwLock<T>>, T, M: Mode> Drop for RwGuard<L, T, M> {
    fn drop(&mut self) {
        if M::ACCESS == Access::Write {
            self.by.set(&self.lock.mark);
        }
        self.lock.give_back(M::ACCESS);
    }
}

impl<L: Deref<Target = RwLock<T>>, T: fmt::Debug, M: Mode> fmt::Debug for RwGuard<L, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
