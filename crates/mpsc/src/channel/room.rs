//! The room of a bounded channel, and the senders that wait for room.
//!
//! **Problem.** A sender without room sleeps until the receiver has made room. A wake-up for each
//! place costs a system call for each item, and both sides then take turns item by item. Sends and
//! receives that need not wait should pay for a count, and nothing else.
//!
//! **Rejected.**
//! - *One count of free places*: the receiver and all senders change it, for each item.
//! - *Giving places back in lots only*: a sender that does not wait would be refused beside room.
//! - *Waking all waiters*: most of them find no room, and sleep again.
//! - *Handing places to waiters*: a task that is not polled would keep its place for ever.
//!
//! **Protocol.** Places have numbers. `sent` counts the places taken, and `received` the places
//! given back; the difference is at most the capacity. Only the receiver writes `received`, by a
//! store. Senders read it only when the places known to them are used up.
//!
//! A *lot* is a quarter of the capacity. For each lot of received items, and whenever it finds the
//! queue empty, the receiver looks for waiting senders.
//! 1. *Sender*: it takes any free place. Otherwise it waits, first awake, for a lot.
//! 2. *Waiter*: it enters the line, under the lock; full fence; it checks for a lot, or for the
//!    end, once more; it sleeps.
//! 3. *Receiver*: it stores `received`; for each lot, or when the queue is empty: full fence; if
//!    senders wait, it wakes the longest-waiting.
//! 4. *Woken waiter*: it takes any free place, or waits on at its place in the line.
//! 5. *Waiter with a place*, or one that gives up: it leaves the line. If it was woken and a lot is
//!    free, it wakes the next. A waiter with a place sends its item first: a waker may panic.
//!
//! **Why no sender sleeps beside room for ever.** Either fence comes first. If it is the
//! receiver's, the waiter sees the receiver's store. If it is the waiter's, the receiver sees the
//! waiter. So a sleeping sender has found less than a lot, or the receiver has woken a sender
//! before it. In both cases places are taken whose items are still to be received: the receiver
//! comes to the end of a lot, or of the queue, and looks again. While the receiver does not
//! receive, and the queue is not empty, a sender may sleep beside less than two lots. The same
//! holds for the end. All this holds if a woken waiter checks again or leaves: a task that does
//! neither keeps its turn, like a suspended thread.
//!
//! **Why the channel never has an item too many.** A sender takes a place by an exchange that
//! starts from the number compared with `received`, and `received` only grows.

use super::line::{Line, Ticket};
use super::yields::Yields;
use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::{CachePadded, LentParker, hint};
use std::cell::Cell;
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

/// How often a sender that waits for a lot pauses, and then yields as long as yielding pays, before
/// it sleeps. Its pauses are as long as a receiver of small items takes for a lot. With an eighth
/// of the pauses a value took two to four times as long, where 16 places are full. In a model no
/// time passes.
const SPINS: u32 = if cfg!(ganger_loom) { 0 } else { 9 };
const YIELDS: u32 = if cfg!(ganger_loom) { 0 } else { 1 };

/// A lot is the capacity divided by this number.
const LOTS: usize = 4;

/// The room of a channel, for its senders.
pub(super) struct Room {
    capacity: usize,
    lot: usize,
    /// Only senders write these.
    taken: CachePadded<TakenPlaces>,
    /// How many places have been given back. The receiver writes it.
    received: CachePadded<AtomicUsize>,
    line: Line,
    /// Only senders write it.
    yields: Yields,
}

struct TakenPlaces {
    /// How many places have been taken.
    sent: AtomicUsize,
    /// The number up to which places are free, as far as senders know: at most the capacity more
    /// than `received`.
    limit: AtomicUsize,
}

/// The result of a wait for a place.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// The sender has a place.
    Place,
    /// The deadline has passed.
    TimedOut,
    /// No item will be received any more.
    Over,
}

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        // No memory holds more items.
        let capacity = capacity.min(isize::MAX.cast_unsigned());
        Self {
            capacity,
            lot: capacity.div_ceil(LOTS),
            taken: CachePadded::new(TakenPlaces {
                sent: AtomicUsize::new(0),
                limit: AtomicUsize::new(capacity),
            }),
            received: CachePadded::new(AtomicUsize::new(0)),
            line: Line::new(),
            yields: Yields::new(),
        }
    }

    /// Takes a place, if any is free.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        self.take_of(1)
    }

    /// Takes a place, if at least `places` places are free.
    #[inline]
    fn take_of(&self, places: usize) -> bool {
        let TakenPlaces { sent, limit } = &*self.taken;
        // Ordering: Relaxed, because the exchange decides.
        let mut number = sent.load(Ordering::Relaxed);
        loop {
            // Ordering: Acquire pairs with the Release below: the receiver's actions before it gave
            // the place happen before the sender's actions with it.
            let mut end = limit.load(Ordering::Acquire);
            if between(number, end) < places {
                // Ordering: Acquire pairs with the Release in `give`.
                end = self
                    .received
                    .load(Ordering::Acquire)
                    .wrapping_add(self.capacity);
                if between(number, end) < places {
                    return false;
                }
                // Ordering: Release pairs with the Acquire above. A late sender may store an
                // earlier limit, which is true as well.
                limit.store(end, Ordering::Release);
            }
            // Ordering: Relaxed, because only the number counts.
            match sent.compare_exchange_weak(
                number,
                number.wrapping_add(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => number = now,
            }
        }
    }

    /// Waits for a few microseconds, because a sleep and a wake-up take longer, and returns whether
    /// the sender has got a place. The sender takes no place before a lot is free: otherwise sender
    /// and receiver would take turns for each item.
    fn spin(&self, is_over: impl Fn() -> bool) -> bool {
        let has_place = || self.take_of(self.lot);
        (0..SPINS).any(|spin| {
            (0..1 << spin).for_each(|_| hint::spin_loop());
            has_place()
        }) || self.yields.any(YIELDS, || !is_over() && has_place())
    }

    /// Returns how many places are free at this moment.
    pub(super) fn free(&self) -> usize {
        // Ordering: Relaxed, because the result is for display and for guesses.
        let received = self.received.load(Ordering::Relaxed);
        let sent = self.taken.sent.load(Ordering::Relaxed);
        between(sent, received.wrapping_add(self.capacity))
    }

    /// Returns how many senders sleep at this moment.
    pub(super) fn waiting(&self) -> usize {
        self.line.len()
    }

    /// Wakes the longest-waiting sender, if any.
    fn look(&self) {
        // Ordering: SeqCst pairs with the fence in `Waiting::wait`.
        fence(Ordering::SeqCst);
        self.line.wake_next();
    }

    /// Wakes all waiting senders, so that they check for the end.
    pub(super) fn wake_all(&self) {
        // Ordering: SeqCst pairs with the fence in `Waiting::wait`.
        fence(Ordering::SeqCst);
        self.line.wake_all();
    }
}

/// Returns the distance from one number to another; 0 if the other is behind.
#[inline]
fn between(from: usize, to: usize) -> usize {
    usize::try_from(to.wrapping_sub(from).cast_signed()).unwrap_or(0)
}

/// A sender that may wait for a place. Dropping it leaves the line.
pub(super) struct Waiting<'a> {
    room: &'a Room,
    ticket: Option<Ticket>,
}

impl<'a> Waiting<'a> {
    pub(super) const fn new(room: &'a Room) -> Self {
        Self { room, ticket: None }
    }

    /// Takes a place; blocks until a place is free, `is_over` returns true, or `timeout` has
    /// passed.
    pub(super) fn block(
        &mut self,
        timeout: Option<Duration>,
        is_over: impl Fn() -> bool,
    ) -> Waited {
        if self.room.try_take() {
            return Waited::Place;
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        if self.room.spin(&is_over) {
            return Waited::Place;
        }
        let parker = LentParker::take();
        let waker = Waker::from(Arc::clone(&parker));
        loop {
            if let Some(waited) = self.wait(&waker, &is_over) {
                return waited;
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => parker.park(),
                Some(left) if left.is_zero() => return Waited::TimedOut,
                Some(left) => {
                    parker.park_timeout(left);
                }
            }
        }
    }

    /// Takes a place, or sees the end: the caller then sends its item, or fails, and leaves.
    /// Otherwise the caller is woken when it must call this function again.
    pub(super) fn wait(&mut self, waker: &Waker, is_over: impl Fn() -> bool) -> Option<Waited> {
        let room = self.room;
        if room.try_take() {
            return Some(Waited::Place);
        }
        room.line.enter(&mut self.ticket, waker);
        // Ordering: SeqCst pairs with the fence in `Room::look` and `Room::wake_all`.
        fence(Ordering::SeqCst);
        if room.take_of(room.lot) {
            return Some(Waited::Place);
        }
        is_over().then_some(Waited::Over)
    }

    /// Leaves the line. A woken waiter passes its turn on to the next.
    pub(super) fn leave(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let waker = self.room.line.leave(ticket);
            if waker.is_none() && self.room.free() >= self.room.lot {
                self.room.line.wake_next();
            }
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The receiver's side: gives places back.
pub(super) struct Giver {
    room: Arc<Room>,
    /// The same number as in the room, which the receiver need not read.
    received: Cell<usize>,
    /// How many places have been given back since the last look for waiting senders.
    unseen: Cell<usize>,
}

impl Giver {
    pub(super) fn new(room: Arc<Room>) -> Self {
        Self {
            room,
            received: Cell::new(0),
            unseen: Cell::new(0),
        }
    }

    /// Gives places back, and looks for waiting senders if they make a lot.
    #[inline]
    pub(super) fn give(&self, places: usize) {
        let received = self.received.get().wrapping_add(places);
        self.received.set(received);
        // Ordering: Release pairs with the Acquire in `take_of`.
        self.room.received.store(received, Ordering::Release);
        let unseen = self.unseen.get() + places;
        self.unseen.set(unseen);
        if unseen >= self.room.lot {
            self.look();
        }
    }

    /// Looks for waiting senders, if places have been given back since the last look. For a
    /// receiver that finds the queue empty.
    #[inline]
    pub(super) fn look(&self) {
        if self.unseen.replace(0) > 0 {
            self.room.look();
        }
    }

    /// Ends all waits, because no item will be received any more.
    pub(super) fn end(&self) {
        self.room.wake_all();
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
