//! Those who wait for room in the mailboxes of a scheduler, with what they want to send.
//!
//! **Problem.** A sender that finds a mailbox full wants to wait until there is room. It may be a
//! thread or a task, and may give up. A process that nobody waits for must not pay for it, neither
//! in bytes nor in time.
//!
//! **Rejected.** A list in each process: millions of them, empty. A lock around the count: every send
//! would take it. Waking one who waits, and letting it try again: others overtake it, and the room
//! stays empty until it has been woken. Keeping a place for it: a task that is not polled again would
//! keep it for ever.
//!
//! **Protocol.** One table a scheduler, in stripes, each with a lock; in it the messages, in the order
//! in which their senders came. The mark in the room's word says whether there are any.
//! 1. *Sender*, under the lock: take a place, or set the mark in the same operation, and leave the
//!    message in the table ([`enter`](Waiters::enter)). Then sleep.
//! 2. *Giver*: give the places back, and read the mark by that. If it is set, under the lock, take a
//!    place for the first message, take that out and push it, the mark with the last
//!    ([`next`](Waiters::next)); without the lock, wake its sender; and so on, until there is no room or
//!    nobody waits.
//! 3. *End*: close the mailbox, close the room, and wake all that wait
//!    ([`close`](Waiters::close)). Their messages stay in the table until they come for them.
//! 4. *Sender that is woken, or gives up*, under the lock: if its message is in the table, it takes
//!    that back, and has not sent it ([`leave`](Waiters::leave), [`poll`](Waiters::poll)); if not, the
//!    message has been accepted.
//!
//! **Why nobody sleeps beside room.** Taking a place or setting the mark is one operation on the word
//! that giving places back is an operation on as well. If giving comes first, the sender finds the
//! place; if not, the giver finds the mark, and the message under the lock. It is the same for the end.
//! **Why nothing is lost or doubled.** A message leaves the table once, under the lock: to the
//! mailbox or to its sender.
//!
//! A room is known by its address. Whoever is in the table keeps the room alive, so that no other can
//! have that address.

use crate::limits::room::{Room, Taken};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, sized};
use std::collections::BTreeMap;
use std::mem;
use std::ptr;
use std::task::Waker;

/// A prime, so that addresses at whatever distance are spread.
const STRIPES: usize = sized(31, 1);

/// Those who wait, with messages of the type `T`.
pub(crate) struct Waiters<T> {
    limit: usize,
    stripes: Box<[CachePadded<Mutex<Stripe<T>>>]>,
}

/// Those who wait for some of the rooms.
struct Stripe<T> {
    next_ticket: u64,
    /// By address of the room, and by ticket.
    entries: BTreeMap<(usize, u64), Entry<T>>,
}

struct Entry<T> {
    item: T,
    waker: Waker,
}

/// What somebody gets back who does not wait any more. The waker is to be dropped when the message is safe: that is users'
/// code.
pub(crate) type Left<T> = (T, Waker);

/// A place in the order of those who wait.
#[derive(Debug)]
pub(crate) struct Ticket(u64);

/// What becomes of one who would wait.
#[must_use]
pub(crate) enum Entered<T> {
    /// There is room after all: it may push the message.
    Place(Left<T>),
    /// It waits, and the table has the message.
    Waiting(Ticket),
    /// The process has ended.
    Closed(Left<T>),
}

/// What has become of one who waits.
#[must_use]
pub(crate) enum Look<T> {
    /// It still waits.
    Waiting,
    /// The message has been accepted.
    Accepted,
    /// The process has ended.
    Closed(Left<T>),
}

impl<T> Waiters<T> {
    /// Nobody; for mailboxes of that limit.
    pub(crate) fn new(limit: usize) -> Self {
        let stripe = |_| {
            CachePadded::new(Mutex::new(Stripe {
                next_ticket: 0,
                entries: BTreeMap::new(),
            }))
        };
        Self {
            limit,
            stripes: (0..STRIPES).map(stripe).collect(),
        }
    }

    /// Takes a place, or has the message wait for one; `waker` is woken when it has been accepted or
    /// the process has ended. Whoever waits keeps the room alive, and gives the ticket back to
    /// [`leave`](Self::leave) or to [`poll`](Self::poll).
    pub(crate) fn enter(&self, room: &Room, item: T, waker: Waker) -> Entered<T> {
        let mut stripe = lock(self.stripe(room));
        match room.take_or_wait(self.limit) {
            Taken::Wait => {
                let ticket = stripe.next_ticket;
                stripe.next_ticket += 1;
                let entry = Entry { item, waker };
                stripe.entries.insert((key(room), ticket), entry);
                Entered::Waiting(Ticket(ticket))
            }
            taken => {
                drop(stripe);
                if taken == Taken::Place {
                    Entered::Place((item, waker))
                } else {
                    Entered::Closed((item, waker))
                }
            }
        }
    }

    /// Looks what has become of one who waits; if nothing, `waker` is the one to be woken, and the one before is in its
    /// place.
    pub(crate) fn poll(&self, room: &Room, ticket: &Ticket, waker: &mut Waker) -> Look<T> {
        let mut stripe = lock(self.stripe(room));
        let Some(entry) = stripe.entries.get_mut(&(key(room), ticket.0)) else {
            return Look::Accepted;
        };
        if room.is_closed() {
            drop(stripe);
            return match self.leave(room, ticket) {
                Some(left) => Look::Closed(left),
                None => Look::Accepted,
            };
        }
        mem::swap(&mut entry.waker, waker);
        Look::Waiting
    }

    /// Takes the message back; none when it has been accepted, or taken back before.
    pub(crate) fn leave(&self, room: &Room, ticket: &Ticket) -> Option<Left<T>> {
        let mut stripe = lock(self.stripe(room));
        let entry = stripe.entries.remove(&(key(room), ticket.0));
        if entry.is_some() && stripe.first(room).is_none() {
            room.forget_waiters();
        }
        drop(stripe);
        entry.map(|Entry { item, waker }| (item, waker))
    }

    /// Calls `push` with the message that has waited longest, if there is room for it, and returns the
    /// waker of its sender, whom the caller wakes.
    ///
    /// Under the lock, so that the message is in the mailbox when its sender learns that it has been
    /// accepted, and sends the next one.
    pub(crate) fn next(&self, room: &Room, push: impl FnOnce(T)) -> Option<Waker> {
        let mut stripe = lock(self.stripe(room));
        let first = stripe.first(room)?;
        if !room.take_for_waiter(self.limit) {
            return None;
        }
        let Entry { item, waker } = stripe.entries.remove(&first)?;
        push(item);
        if stripe.first(room).is_none() {
            room.forget_waiters();
        }
        Some(waker)
    }

    /// The process has ended, and its mailbox is closed: `wake` is called with the waker of each who
    /// waits.
    pub(crate) fn close(&self, room: &Room, mut wake: impl FnMut(Waker)) {
        if !room.close() {
            return;
        }
        let mut from = 0;
        // Nobody comes any more, so that this ends.
        while let Some((ticket, waker)) = self.take_waker(room, from) {
            wake(waker);
            from = ticket + 1;
        }
    }

    fn take_waker(&self, room: &Room, from: u64) -> Option<(u64, Waker)> {
        let mut stripe = lock(self.stripe(room));
        let mut rest = stripe
            .entries
            .range_mut((key(room), from)..=(key(room), u64::MAX));
        let (&(_, ticket), entry) = rest.next()?;
        let waker = mem::replace(&mut entry.waker, Waker::noop().clone());
        Some((ticket, waker))
    }

    fn stripe(&self, room: &Room) -> &Mutex<Stripe<T>> {
        // What is in one allocation with the room takes a cache line at the least.
        &self.stripes[key(room) / 64 % self.stripes.len()]
    }
}

impl<T> Stripe<T> {
    /// The key of whoever has waited longest for that room.
    fn first(&self, room: &Room) -> Option<(usize, u64)> {
        let mut all = self.entries.range((key(room), 0)..=(key(room), u64::MAX));
        all.next().map(|(key, _)| *key)
    }
}

fn key(room: &Room) -> usize {
    ptr::from_ref(room).addr()
}
