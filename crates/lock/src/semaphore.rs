//! Permits of a limited number; a request may take several.
//!
//! **Protocol.** A queue of requests, each with its weight. Returned permits go to the first
//! request as soon as they are enough for its weight. A large request at the head is not overtaken:
//! smaller requests behind it wait, and so do newcomers.

use crate::blocking::block_on;
use crate::seat::Seat;
use ganger_sync::sync::{Mutex, MutexGuard, lock};
use ganger_wait::watch::{self, PERMITS, Thing};
use ganger_wait::{Left, WaitQueue, WakeList};
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Permits for as many as may do something at a time. Requests are served in their order.
///
/// ```
/// use ganger_lock::Semaphore;
///
/// let connections = Semaphore::new(2);
/// let first = connections.try_acquire(1).unwrap();
/// assert!(connections.try_acquire(2).is_err());
/// drop(first);
/// assert_eq!(connections.available(), 2);
/// ```
pub struct Semaphore {
    state: Mutex<State>,
}

struct State {
    permits: usize,
    is_closed: bool,
    /// An item is a weight.
    queue: WaitQueue<usize>,
}

/// The reason why a request gets no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The semaphore is closed: it grants no more permits.
    #[error("the semaphore is closed")]
    Closed,
    /// The semaphore has too few permits at this moment, or earlier requests wait for them.
    #[error("not enough permits are free; `acquire` waits for these")]
    NoPermits,
}

impl Semaphore {
    /// Creates a semaphore with this number of permits.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        let state = State {
            permits,
            is_closed: false,
            queue: WaitQueue::new(),
        };
        let state = Mutex::new(state);
        Self { state }
    }

    /// Waits for this number of permits. A dropped wait gives its permits back.
    ///
    /// # Errors
    /// [`AcquireError::Closed`].
    pub fn acquire(&self, permits: usize) -> Acquire<&Self> {
        Acquire::new(self, permits)
    }

    /// Acquires as [`acquire`](Self::acquire) does; the permits keep the semaphore alive.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_owned(self: Arc<Self>, permits: usize) -> Acquire<Arc<Self>> {
        Acquire::new(self, permits)
    }

    /// Blocks this thread until it has this number of permits. Not for steps.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_blocking(&self, permits: usize) -> Result<Permits<&Self>, AcquireError> {
        block_on("an acquire that waits", "`acquire`", self.acquire(permits))
    }

    /// Takes this number of permits, if they are there, and no request waits. Never blocks.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn try_acquire(&self, permits: usize) -> Result<Permits<&Self>, AcquireError> {
        Permits::take(self, permits)
    }

    /// Tries as [`try_acquire`](Self::try_acquire) does; the permits keep the semaphore alive.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_owned(
        self: Arc<Self>,
        permits: usize,
    ) -> Result<Permits<Arc<Self>>, AcquireError> {
        Permits::take(self, permits)
    }

    /// Adds permits.
    ///
    /// # Panics
    /// If the sum is more than `usize::MAX`.
    pub fn add_permits(&self, permits: usize) {
        let mut wakes = WakeList::new();
        let mut state = lock(&self.state);
        state.permits = match state.permits.checked_add(permits) {
            Some(sum) => sum,
            None => panic!("a semaphore has at most usize::MAX permits"),
        };
        state.serve(&mut wakes);
    }

    /// Returns the name of the semaphore in a report of a deadlock.
    fn thing(&self) -> Thing {
        Thing::of(PERMITS, self)
    }

    /// Returns the number of free permits at this moment.
    #[must_use]
    pub fn available(&self) -> usize {
        lock(&self.state).permits
    }

    /// Closes the semaphore: waiting and later requests get an error. Permits that are out stay
    /// valid.
    pub fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        let all = state.queue.take_all(Some(CLOSED));
        drop(state);
        drop(all);
    }

    /// Returns whether the semaphore has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.state).is_closed
    }
}

/// The cases as which a request is claimed.
const GIVEN: u32 = 0;
const CLOSED: u32 = 1;

impl State {
    fn take(&mut self, permits: usize) -> Result<(), AcquireError> {
        if self.is_closed {
            return Err(AcquireError::Closed);
        }
        if !self.queue.is_empty() || self.permits < permits {
            return Err(AcquireError::NoPermits);
        }
        self.permits -= permits;
        Ok(())
    }

    /// Gives permits to the requests at the head.
    fn serve(&mut self, wakes: &mut WakeList) {
        while let Some(entry) = self.queue.pop_if(|&weight| weight <= self.permits) {
            self.permits -= entry.item;
            wakes.push(entry.waiter);
        }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state: MutexGuard<'_, State> = lock(&self.state);
        f.debug_struct("Semaphore")
            .field("available", &state.permits)
            .field("waiting", &state.queue.len())
            .field("is_closed", &state.is_closed)
            .finish()
    }
}

/// Waits for permits of a [`Semaphore`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Acquire<S: Deref<Target = Semaphore>> {
    /// None when it is over.
    semaphore: Option<S>,
    permits: usize,
    seat: Option<Seat>,
}

impl<S: Deref<Target = Semaphore>> Acquire<S> {
    fn new(semaphore: S, permits: usize) -> Self {
        Self {
            semaphore: Some(semaphore),
            permits,
            seat: None,
        }
    }
}

impl<S: Deref<Target = Semaphore>> Unpin for Acquire<S> {}

/// # Panics
/// Polling it again after it was ready panics.
impl<S: Deref<Target = Semaphore>> Future for Acquire<S> {
    type Output = Result<Permits<S>, AcquireError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(semaphore) = &this.semaphore else {
            panic!("a wait for a semaphore is polled after it was ready")
        };
        let mut result = Ok(());
        if this.seat.is_none() {
            let mut state = lock(&semaphore.state);
            result = state.take(this.permits);
            if result == Err(AcquireError::NoPermits) {
                this.seat = Some(Seat::back(
                    &mut state.queue,
                    GIVEN,
                    this.permits,
                    semaphore.thing(),
                ));
            }
        }
        if let Some(seat) = &this.seat {
            result = match seat.poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(GIVEN) => Ok(()),
                Poll::Ready(_) => Err(AcquireError::Closed),
            };
            this.seat = None;
        }
        let permits = this.permits;
        let Some(semaphore) = this.semaphore.take() else {
            unreachable!("it was there")
        };
        Poll::Ready(result.map(|()| Permits::new(semaphore, permits)))
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Acquire<S> {
    fn drop(&mut self) {
        let (Some(semaphore), Some(seat)) = (&self.semaphore, &self.seat) else {
            return;
        };
        let mut wakes = WakeList::new();
        let mut state = lock(&semaphore.state);
        if seat.leave(&mut state.queue) == Left::Claimed(GIVEN) {
            state.permits += self.permits;
        }
        // The requests behind it may want less.
        state.serve(&mut wakes);
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Acquire<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire")
            .field("permits", &self.permits)
            .finish_non_exhaustive()
    }
}

/// Permits, which go back when the guard is dropped.
#[must_use = "permits that are dropped go back at once"]
pub struct Permits<S: Deref<Target = Semaphore>> {
    semaphore: S,
    permits: usize,
}

impl<S: Deref<Target = Semaphore>> Permits<S> {
    fn take(semaphore: S, permits: usize) -> Result<Self, AcquireError> {
        lock(&semaphore.state).take(permits)?;
        Ok(Self::new(semaphore, permits))
    }

    fn new(semaphore: S, permits: usize) -> Self {
        watch::took(|| semaphore.thing());
        Self { semaphore, permits }
    }

    /// Returns the number of permits.
    #[must_use]
    pub fn count(&self) -> usize {
        self.permits
    }

    /// Forgets the permits, which do not go back to the semaphore.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permits<S> {
    fn drop(&mut self) {
        watch::gave(|| self.semaphore.thing());
        if self.permits > 0 {
            self.semaphore.add_permits(self.permits);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Permits<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permits").field(&self.permits).finish()
    }
}
