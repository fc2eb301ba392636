//! The senders waiting for room in the mailboxes of a scheduler, with their messages.
//!
//! **Problem.** A sender that finds a mailbox full wants to wait for room. The sender is a thread
//! or a task, and may give up. A process without waiters must not pay for them, neither in bytes
//! nor in time.
//!
//! **Rejected.**
//! - A list in each process: millions of them are empty.
//! - A lock around the count: every send takes it.
//! - To wake a waiter and let it try again: other senders overtake it, and the room stays empty
//!   until the waiter runs.
//! - To keep a place for a waiter: a task that is not polled again keeps it for ever.
//! - `WaitTable` of `ganger-sync`: the giver removes an entry before its waiter looks, so its
//!   number would lead to a later entry. Each room would need a list in a map of its own besides.
//!
//! **Protocol.** A scheduler has a table, in stripes, each with a lock. The table holds the
//! messages in the order in which their senders came. The mark in the room's word says whether the
//! table has a waiter for it.
//! 1. *Sender*, under the lock: it takes a place, or sets the mark in the same operation and
//!    leaves the message in the table ([`enter`](Waiters::enter)). Then it sleeps.
//! 2. *Giver*: it gives the places back, and the same operation reads the mark. If the mark is set,
//!    the giver serves the waiters as soon as a lot of room is free, or the process takes nothing
//!    more (`room.rs`). Until room or waiters run out, it takes a place for the first message,
//!    takes the message out and pushes it, all under the lock ([`next`](Waiters::next)). With the
//!    last message it also clears the mark. Then it wakes the senders, without the lock.
//! 3. *End*: it closes the mailbox, closes the room, and wakes all waiters
//!    ([`close`](Waiters::close)). Their messages stay in the table until the waiters take them.
//! 4. *Stop*, under each lock: it marks the stripe against further waits ([`stop`](Waiters::stop)).
//!    Then it wakes all waiters, without a lock ([`wake_all`](Waiters::wake_all)). Until a waiter
//!    has taken its message back, a giver may still accept it.
//! 5. *Waiter, when woken or giving up*, under the lock: if its message is in the table, the waiter
//!    may take it back unsent ([`leave`](Waiters::leave), [`poll`](Waiters::poll)). If not, the
//!    mailbox has accepted the message. A waiter whose time is over serves the waiters first, for
//!    less than a lot of room may be free.
//!
//! **Why no waiter sleeps beside room.** The sender takes a place or sets the mark in one operation
//! on the word. The giver gives places back by an operation on the same word. If the giver comes
//! first, the sender finds the place. If not, the giver finds the mark, and the message under the
//! lock. The end works the same way. A giver that leaves waiters while less than a lot of room
//! is free runs a process with messages left. The giver looks again after each step, when a step
//! announces a block, and when the process waits or ends. A step that blocks without
//! an announcement delays this until it returns. The monitor does not serve the waiters meanwhile:
//! their wakers are user code, which may block.
//!
//! **Why nothing is lost or doubled.** A message leaves the table once, under the lock: to the
//! mailbox or to its sender.
//!
//! The table knows a room by its address. A waiter in the table keeps the room alive, so no other
//! room can have the same address.

use crate::limits::room::{Room, Taken};
use ganger_proc_api::SendErrorKind;
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, sized};
use std::collections::BTreeMap;
use std::mem;
use std::ops::RangeInclusive;
use std::ptr;
use std::task::Waker;

/// A prime, to spread addresses at whatever distance.
const STRIPES: usize = sized(31, 1);

/// The waiters, with messages of the type `T`.
pub(crate) struct Waiters<T> {
    stripes: Box<[CachePadded<Mutex<Stripe<T>>>]>,
}

/// The waiters for some of the rooms.
struct Stripe<T> {
    next_ticket: u64,
    /// By address of the room, and by ticket.
    entries: BTreeMap<Key, Entry<T>>,
    /// No further sender waits, because the scheduler stops.
    is_stopped: bool,
}

/// The address of a room, and a ticket.
type Key = (usize, u64);

struct Entry<T> {
    item: T,
    waker: Waker,
}

/// The message and the waker returned to a waiter that leaves the table. The waker is user code:
/// the waiter drops it when the message is safe.
pub(crate) type Left<T> = (T, Waker);

/// A place in the order of the waiters.
#[derive(Debug)]
pub(crate) struct Ticket(u64);

/// The result for a sender ready to wait.
#[must_use]
pub(crate) enum Entered<T> {
    /// Room after all: the sender may push the message.
    Place(Left<T>),
    /// The sender waits, and the table has the message.
    Waiting(Ticket),
    /// The process has ended, or the scheduler stops.
    Refused(SendErrorKind, Left<T>),
}

/// The state of a waiter.
#[must_use]
pub(crate) enum Look<T> {
    /// The sender still waits.
    Waiting,
    /// The message has been accepted.
    Accepted,
    /// The process has ended, or the scheduler stops.
    Refused(SendErrorKind, Left<T>),
}

impl<T> Waiters<T> {
    /// Creates an empty table.
    pub(crate) fn new() -> Self {
        let stripe = |_| {
            CachePadded::new(Mutex::new(Stripe {
                next_ticket: 0,
                entries: BTreeMap::new(),
                is_stopped: false,
            }))
        };
        Self {
            stripes: (0..STRIPES).map(stripe).collect(),
        }
    }

    /// Takes a place in the room, or puts the message into the table. `waker` is woken when the
    /// mailbox has accepted the message, the process has ended, or the scheduler stops. The waiter
    /// keeps the room alive, and passes the ticket to [`leave`](Self::leave) or to
    /// [`poll`](Self::poll).
    pub(crate) fn enter(&self, room: &Room, limit: usize, item: T, waker: Waker) -> Entered<T> {
        let mut stripe = lock(self.stripe(room));
        let taken = if stripe.is_stopped {
            room.take_or_refuse(limit)
        } else {
            room.take_or_wait(limit)
        };
        match taken {
            Taken::Wait => {
                let ticket = stripe.next_ticket;
                stripe.next_ticket += 1;
                let entry = Entry { item, waker };
                stripe.entries.insert((key(room), ticket), entry);
                Entered::Waiting(Ticket(ticket))
            }
            Taken::Place => Entered::Place((item, waker)),
            Taken::Refused => Entered::Refused(refusal(room), (item, waker)),
        }
    }

    /// Looks at the state of a waiter. If the waiter still waits, the table takes `waker`, and the
    /// previous waker is in its place.
    pub(crate) fn poll(&self, room: &Room, ticket: &Ticket, waker: &mut Waker) -> Look<T> {
        let mut stripe = lock(self.stripe(room));
        if room.is_closed() || stripe.is_stopped {
            drop(stripe);
            return match self.leave(room, ticket) {
                Some(left) => Look::Refused(refusal(room), left),
                None => Look::Accepted,
            };
        }
        let Some(entry) = stripe.entries.get_mut(&(key(room), ticket.0)) else {
            return Look::Accepted;
        };
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

    /// Calls `push` with the longest waiting message, if room is free. Returns the waker of its
    /// sender, for the caller to wake. A mailbox closed meanwhile returns the message, and the end
    /// wakes its sender.
    ///
    /// The push is under the lock. So the message is in the mailbox before its sender learns of the
    /// acceptance, and sends its next message.
    pub(crate) fn next(
        &self,
        room: &Room,
        limit: usize,
        push: impl FnOnce(T) -> Result<(), T>,
    ) -> Option<Waker> {
        let mut stripe = lock(self.stripe(room));
        let first = stripe.first(room)?;
        if !room.take_for_waiter(limit) {
            return None;
        }
        let Entry { item, waker } = stripe.entries.remove(&first)?;
        if let Err(item) = push(item) {
            stripe.entries.insert(first, Entry { item, waker });
            return None;
        }
        if stripe.first(room).is_none() {
            room.forget_waiters();
        }
        Some(waker)
    }

    /// Closes the room of a process that has ended, and calls `wake` with the waker of each waiter.
    pub(crate) fn close(&self, room: &Room, mut wake: impl FnMut(Waker)) {
        if !room.close() {
            return;
        }
        // The room is closed to new waiters.
        let all = (key(room), 0)..=(key(room), u64::MAX);
        wake_each(self.stripe(room), all, &mut wake);
    }

    /// Ends further waits, for a stop. Returns whether senders wait already; the caller must
    /// [wake](Self::wake_all) them.
    #[must_use]
    pub(crate) fn stop(&self) -> bool {
        let mut do_wait = false;
        for stripe in &self.stripes {
            let mut stripe = lock(stripe);
            stripe.is_stopped = true;
            do_wait |= !stripe.entries.is_empty();
        }
        do_wait
    }

    /// Calls `wake` with the waker of each waiter, after a [`stop`](Self::stop).
    pub(crate) fn wake_all(&self, mut wake: impl FnMut(Waker)) {
        for stripe in &self.stripes {
            wake_each(stripe, (0, 0)..=(usize::MAX, u64::MAX), &mut wake);
        }
    }

    fn stripe(&self, room: &Room) -> &Mutex<Stripe<T>> {
        // An allocation with a room takes at least a cache line.
        &self.stripes[key(room) / 64 % self.stripes.len()]
    }
}

impl<T> Stripe<T> {
    /// Returns the key of the longest waiting sender for the room.
    fn first(&self, room: &Room) -> Option<(usize, u64)> {
        let mut all = self.entries.range((key(room), 0)..=(key(room), u64::MAX));
        all.next().map(|(key, _)| *key)
    }
}

/// Calls `wake`, without the lock, with the waker of each waiter with such a key. No more of them
/// come, so this ends.
fn wake_each<T>(
    stripe: &Mutex<Stripe<T>>,
    mut keys: RangeInclusive<Key>,
    wake: &mut impl FnMut(Waker),
) {
    let take_waker = |keys| {
        let mut stripe = lock(stripe);
        let (&key, entry) = stripe.entries.range_mut(keys).next()?;
        let waker = mem::replace(&mut entry.waker, Waker::noop().clone());
        Some((key, waker))
    };
    while let Some(((room, ticket), waker)) = take_waker(keys.clone()) {
        wake(waker);
        keys = (room, ticket + 1)..=*keys.end();
    }
}

/// Returns the reason why a sender is refused instead of waiting.
fn refusal(room: &Room) -> SendErrorKind {
    if room.is_closed() {
        SendErrorKind::Closed
    } else {
        SendErrorKind::Stopping
    }
}

fn key(room: &Room) -> usize {
    ptr::from_ref(room).addr()
}
