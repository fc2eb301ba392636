//! The shared state of both ends of a channel.

use crate::entries::{Line, Outcome, Seat, Wake};
use crate::lock::Lock;
use crate::settled::{Settled, Then};
use crate::state::{State, Wakes};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::{CachePadded, for_each_past_panics};
use ganger_wait::watch::Thing;
use std::task::Waker;

pub(crate) struct Shared<T> {
    pub(crate) state: CachePadded<Lock<State<T>>>,
    /// The number of each end's handles.
    pub(crate) senders: AtomicUsize,
    pub(crate) receivers: AtomicUsize,
    /// The claimed values that do not come back. Receivers write it without the lock.
    settled: Settled,
}

impl<T> Shared<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: CachePadded::new(Lock::new(State::new(capacity))),
            senders: AtomicUsize::new(1),
            receivers: AtomicUsize::new(1),
            settled: Settled::new(),
        }
    }

    pub(crate) fn close(&self) -> bool {
        let (was_open, wakes) = self.state.lock().close(&self.settled);
        wake_all(wakes);
        was_open
    }

    /// Returns the object for which a receiver waits, in reports of deadlocks.
    pub(crate) fn sending_end(&self) -> Thing {
        Thing::of("sender of the channel", self)
    }

    /// Returns the object for which a sender waits, in reports of deadlocks.
    pub(crate) fn receiving_end(&self) -> Thing {
        Thing::of("receiver of the channel", self)
    }

    /// Takes the seat, if its wait is over. Otherwise sets `waker` as its waker. The seat is of the
    /// end `of` this channel.
    #[inline(always)]
    pub(crate) fn outcome(
        &self,
        seat: &mut Option<Seat<T>>,
        of: End<T>,
        waker: &Waker,
    ) -> Option<Outcome<T>> {
        match seat.take()?.try_take() {
            Ok(outcome) => return Some(outcome),
            Err(its) => *seat = Some(its),
        }
        if seat.as_ref().is_some_and(|its| its.will_wake(waker)) {
            return None;
        }
        self.change_waker(seat, of, waker)
    }

    /// Changes the waker of a wait that goes on, or returns the outcome. A waker is users' code,
    /// also in its clone and drop. If the waker panics, the wait keeps its seat.
    #[cold]
    fn change_waker(
        &self,
        seat: &mut Option<Seat<T>>,
        of: End<T>,
        waker: &Waker,
    ) -> Option<Outcome<T>> {
        let waker = waker.clone();
        let its = seat.as_mut()?;
        let mut state = self.state.lock();
        // SAFETY: the seat is of this line, as the callers say.
        let unused = unsafe { of(&mut state).change_waker(its, waker) };
        drop(state);
        drop(unused);
        seat.take()?
            .try_take()
            .map_err(|its| *seat = Some(its))
            .ok()
    }

    /// Ends the wait of a seat of the end `of` this channel.
    pub(crate) fn leave(&self, seat: Seat<T>, of: End<T>) -> Outcome<T> {
        seat.try_take().unwrap_or_else(|seat| {
            let mut state = self.state.lock();
            // SAFETY: the seat is of this line, as the callers say.
            let (remains, outcome) = unsafe { of(&mut state).leave(seat) };
            drop(state);
            drop(remains);
            outcome
        })
    }

    /// Settles a claimed value, which does not come back.
    #[inline]
    pub(crate) fn settle(&self) {
        if let Then::Look = self.settled.settle() {
            self.look_for_end();
        }
    }

    #[cold]
    fn look_for_end(&self) {
        let wakes = self.state.lock().look_for_end(&self.settled);
        wake_all(wakes);
    }

    pub(crate) fn give_back(&self, number: usize, value: T) {
        // Ordering: Acquire pairs with the Release in the drop of the last receiver.
        if self.receivers.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut state = self.state.lock();
        let wake = state.give_back(number, value);
        // Only now: until then the value is claimed.
        let wakes = match self.settled.settle() {
            Then::Nothing => Wakes::new(),
            Then::Look => state.look_for_end(&self.settled),
        };
        drop(state);
        wake_all(wake.into_iter().chain(wakes).collect());
    }
}

/// Either line of a channel.
type End<T> = fn(&mut State<T>) -> &mut Line<T>;

/// Wakes all waiters, even if a waker panics.
pub(crate) fn wake_all(wakes: Wakes) {
    for_each_past_panics(wakes.into_iter(), Wake::wake);
}

/// Counts one more handle of an end.
pub(crate) fn add(count: &AtomicUsize) {
    // Ordering: Relaxed, as in a clone of an `Arc`: the caller has another handle of this end.
    count.fetch_add(1, Ordering::Relaxed);
}

/// Counts one handle less of an end; returns whether it was the last.
pub(crate) fn is_last(count: &AtomicUsize) -> bool {
    // Ordering: AcqRel: the last handle sees the actions of the others before their drops.
    count.fetch_sub(1, Ordering::AcqRel) == 1
}
