//! Values for all subscribers, in one order.
//!
//! A ring keeps the last values. A subscriber that falls behind by more than the ring loses the
//! oldest values, and is told how many. So no subscriber holds others up.
//!
//! **No value is kept for nothing.** Each value counts the subscribers that get it next. A
//! subscriber that has got it counts for the next value, and a subscriber that has lost values for
//! the oldest. The oldest value is dropped when no subscriber counts for it.

use crate::block::block_on;
use crate::lock::Lock;
use crate::shared::{add, is_last, wake_all};
use crate::state::KEPT;
use crate::waiters::{Awaited, Seat, Waiters, leave, poll};
use ganger_sync::atomic::AtomicUsize;
use ganger_sync::shrink_after_burst;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Creates a channel whose subscribers get each value. The channel keeps up to `capacity` of the
/// last values, each until all its subscribers have got it.
///
/// # Panics
/// With a capacity of 0.
///
/// ```
/// use ganger_channel::{BroadcastError, broadcast};
///
/// let (broadcaster, mut slow) = broadcast(2);
/// let mut quick = broadcaster.subscribe();
/// broadcaster.send(1);
/// assert_eq!(quick.try_recv(), Ok(1));
/// broadcaster.send(2);
/// broadcaster.send(3);
/// assert_eq!(slow.try_recv(), Err(BroadcastError::Lagged(1)));
/// assert_eq!([slow.try_recv(), slow.try_recv()], [Ok(2), Ok(3)]);
/// ```
pub fn broadcast<T>(capacity: usize) -> (Broadcaster<T>, Subscriber<T>) {
    assert!(capacity > 0, "a broadcast keeps at least one value");
    let shared = Arc::new(Shared {
        state: Lock::new(State {
            ring: VecDeque::new(),
            capacity,
            first: 0,
            at_end: 1,
            is_closed: false,
            waiters: Waiters::new(),
        }),
        broadcasters: AtomicUsize::new(1),
    });
    let subscriber = Subscriber {
        shared: Arc::clone(&shared),
        next: 0,
    };
    (Broadcaster(shared), subscriber)
}

struct Shared<T> {
    state: Lock<State<T>>,
    broadcasters: AtomicUsize,
}

struct State<T> {
    ring: VecDeque<Kept<T>>,
    capacity: usize,
    /// The number of the oldest value in the ring.
    first: u64,
    /// How many subscribers get the next sent value next.
    at_end: usize,
    is_closed: bool,
    waiters: Waiters,
}

struct Kept<T> {
    value: Arc<T>,
    /// How many subscribers get it next.
    waited_for: usize,
}

/// Values to be dropped without the lock.
type Gone<T> = SmallVec<[Kept<T>; 4]>;

impl<T> State<T> {
    /// Returns the count of subscribers that get next the value with number `next`. A subscriber
    /// that has lost values counts for the oldest.
    fn waited_for(&mut self, next: u64) -> &mut usize {
        let at = usize::try_from(next.saturating_sub(self.first)).ok();
        match at.and_then(|at| self.ring.get_mut(at)) {
            Some(kept) => &mut kept.waited_for,
            None => &mut self.at_end,
        }
    }

    fn pop(&mut self) -> Option<Kept<T>> {
        let oldest = self.ring.pop_front()?;
        self.first += 1;
        shrink_after_burst(&mut self.ring, KEPT);
        Some(oldest)
    }

    /// Takes out the values that no subscriber can get.
    fn trim(&mut self) -> Gone<T> {
        let mut gone = Gone::new();
        while self.ring.front().is_some_and(|it| it.waited_for == 0) {
            gone.extend(self.pop());
        }
        gone
    }

    /// Returns the number of the next sent value.
    fn end(&self) -> u64 {
        self.first + self.ring.len() as u64
    }
}

impl<T> Awaited for State<T> {
    const KIND: &'static str = "broadcaster";

    fn waiters(&mut self) -> &mut Waiters {
        &mut self.waiters
    }
}

/// Why a subscriber has got no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// The subscriber was too slow, and has lost this many values. The next receive returns the
    /// oldest remaining value.
    #[error("the receiver lagged: {0} values were dropped; receive again for the next")]
    Lagged(u64),
    /// All broadcasters are gone, and the last value has been received.
    #[error("the broadcast is closed, and all values have been received")]
    Closed,
    /// The subscriber has received all values so far.
    #[error("no newer value; `recv` waits for the next")]
    Empty,
    /// No new value came in time.
    #[error("timed out: no newer value came")]
    Timeout,
    /// A worker of a scheduler must not block.
    #[error("a step must not block its worker; await `recv`")]
    OnWorker,
}

/// Sends to all subscribers of a [`broadcast`].
pub struct Broadcaster<T>(Arc<Shared<T>>);

/// Receives from a [`broadcast`]. A clone gets the values that this subscriber has not received.
pub struct Subscriber<T> {
    shared: Arc<Shared<T>>,
    /// The number of the value that it gets next.
    next: u64,
}

impl<T> Broadcaster<T> {
    /// Sends to all subscribers. If the channel already keeps `capacity` values, drops the oldest.
    /// Never blocks.
    pub fn send(&self, value: T) {
        let value = Arc::new(value);
        let mut state = self.0.state.lock();
        let waited_for = mem::take(&mut state.at_end);
        state.ring.push_back(Kept { value, waited_for });
        let oldest = if state.ring.len() > state.capacity {
            state.pop()
        } else {
            None
        };
        if let Some(oldest) = &oldest {
            let first = state.first;
            *state.waited_for(first) += oldest.waited_for;
        }
        // Without a subscriber, the new value itself goes.
        let gone = state.trim();
        let wakes = state.waiters.end_all();
        drop(state);
        wake_all(wakes);
        drop((oldest, gone));
    }

    /// Returns a subscriber of the values sent from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscriber<T> {
        let mut state = self.0.state.lock();
        state.at_end += 1;
        let next = state.end();
        drop(state);
        Subscriber {
            shared: Arc::clone(&self.0),
            next,
        }
    }
}

impl<T: Clone> Subscriber<T> {
    /// Returns the next value, if any. Never blocks.
    ///
    /// # Errors
    /// [`BroadcastError::Empty`], [`BroadcastError::Lagged`] and [`BroadcastError::Closed`].
    pub fn try_recv(&mut self) -> Result<T, BroadcastError> {
        let looked = look(&mut self.shared.state.lock(), &mut self.next);
        looked
            .unwrap_or(Err(BroadcastError::Empty))
            .map(Arc::unwrap_or_clone)
    }

    /// Receives the next value. A dropped future has received nothing.
    ///
    /// # Errors
    /// The future's: [`BroadcastError::Lagged`] and [`BroadcastError::Closed`].
    pub fn recv(&mut self) -> BroadcastRecv<'_, T> {
        BroadcastRecv {
            subscriber: self,
            seat: Seat::default(),
        }
    }

    /// Receives the next value, as [`recv`](Self::recv) does, but blocks the thread. Does not block
    /// a worker of a scheduler.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), and [`BroadcastError::OnWorker`] if it would wait in a step.
    pub fn recv_blocking(&mut self) -> Result<T, BroadcastError> {
        self.recv_within(None)
    }

    /// Receives the next value, as [`recv_blocking`](Self::recv_blocking) does, but waits for at
    /// most `timeout`.
    ///
    /// # Errors
    /// As [`recv_blocking`](Self::recv_blocking), and [`BroadcastError::Timeout`].
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<T, BroadcastError> {
        self.recv_within(Some(timeout))
    }

    fn recv_within(&mut self, timeout: Option<Duration>) -> Result<T, BroadcastError> {
        match self.try_recv() {
            Err(BroadcastError::Empty) => {}
            done => return done,
        }
        if !ganger_sched::internal::may_block("a subscriber that waits", "`recv`") {
            return Err(BroadcastError::OnWorker);
        }
        block_on(&mut self.recv(), timeout).unwrap_or(Err(BroadcastError::Timeout))
    }
}

fn look<T>(state: &mut State<T>, next: &mut u64) -> Option<Result<Arc<T>, BroadcastError>> {
    let Some(at) = next.checked_sub(state.first) else {
        let lost = state.first - *next;
        *next = state.first;
        return Some(Err(BroadcastError::Lagged(lost)));
    };
    let kept = usize::try_from(at)
        .ok()
        .and_then(|at| state.ring.get_mut(at));
    let Some(kept) = kept else {
        return state.is_closed.then_some(Err(BroadcastError::Closed));
    };
    kept.waited_for -= 1;
    let is_last = at == 0 && kept.waited_for == 0;
    let value = Arc::clone(&kept.value);
    *next += 1;
    *state.waited_for(*next) += 1;
    if is_last {
        // The caller has the value, so this does not drop it.
        state.pop();
    }
    Some(Ok(value))
}

impl<T> Clone for Broadcaster<T> {
    fn clone(&self) -> Self {
        add(&self.0.broadcasters);
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Broadcaster<T> {
    fn drop(&mut self) {
        if is_last(&self.0.broadcasters) {
            let mut state = self.0.state.lock();
            state.is_closed = true;
            let wakes = state.waiters.end_all();
            drop(state);
            wake_all(wakes);
        }
    }
}

impl<T> Clone for Subscriber<T> {
    fn clone(&self) -> Self {
        *self.shared.state.lock().waited_for(self.next) += 1;
        Self {
            shared: Arc::clone(&self.shared),
            next: self.next,
        }
    }
}

impl<T> Drop for Subscriber<T> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        *state.waited_for(self.next) -= 1;
        let gone = state.trim();
        drop(state);
        drop(gone);
    }
}

impl<T> fmt::Debug for Broadcaster<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broadcaster").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Subscriber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").finish_non_exhaustive()
    }
}

/// Receives the next value: see [`Subscriber::recv`].
#[must_use = "a future does nothing until it is polled"]
pub struct BroadcastRecv<'a, T> {
    subscriber: &'a mut Subscriber<T>,
    seat: Seat,
}

impl<T: Clone> Future for BroadcastRecv<'_, T> {
    type Output = Result<T, BroadcastError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Subscriber { shared, next } = &mut *this.subscriber;
        let looked = poll(&shared.state, &mut this.seat, context, |state| {
            look(state, next)
        });
        looked.map(|got| got.map(Arc::unwrap_or_clone))
    }
}

impl<T> Drop for BroadcastRecv<'_, T> {
    fn drop(&mut self) {
        leave(&self.subscriber.shared.state, &mut self.seat);
    }
}

impl<T> fmt::Debug for BroadcastRecv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BroadcastRecv")
            .field(self.subscriber)
            .finish()
    }
}
