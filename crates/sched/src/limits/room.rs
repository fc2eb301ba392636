//! How many messages and control messages a limited mailbox holds, and whether a sender waits for
//! room in it: one word.
//!
//! A place is for one message, and is taken before the message is pushed. The worker that runs the
//! process gives places back. `HAS_WAITERS` changes under the lock of [`Waiters`] alone. The
//! worker that ends the process sets `CLOSED` once.
//!
//! Control messages have places of their own, up to the same limit. So a mailbox that is full of
//! messages still takes control messages. No sender waits for a control place, and a waiter for a
//! message place does not hinder control messages. Until `CLOSED` is set, `take_control` takes a
//! place below the limit.
//!
//! | messages | `HAS_WAITERS` | `CLOSED` | `take` | `take_or_wait` | `take_for_waiter` |
//! |---|---|---|---|---|---|
//! | below the limit | no | no | a place | a place | a place |
//! | at the limit | no | no | nothing | waits: sets `HAS_WAITERS` | nothing |
//! | any | yes | no | nothing | waits | a place below the limit |
//! | any | any | yes | nothing | is told | nothing |
//!
//! The mark is in the same word as the count. So the giver of a place learns from that operation
//! whether a sender waits, and a later sender does not overtake the waiters.
//!
//! [`Waiters`]: crate::limits::waiters::Waiters

use crate::base::config::MAX_LIMIT;
use ganger_sync::atomic::{AtomicU64, Ordering};

/// A sender waits for room.
const HAS_WAITERS: u64 = 1;
/// The process has ended.
const CLOSED: u64 = 1 << 1;
/// One message; the count is in the bits from here up to those of the control messages.
pub(crate) const MESSAGE: u64 = 1 << 2;
/// One control message; the count is in the bits from here on.
pub(crate) const CONTROL: u64 = 1 << 33;

const _: () = assert!(MAX_LIMIT as u64 == CONTROL / MESSAGE - 1 && CONTROL == 1 << (64 - 31));

/// The room of one mailbox. Unused without a limit, which is [`MAX_LIMIT`] at the most.
pub(crate) struct Room(AtomicU64);

/// The result for a sender that is ready to wait.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A place: it may push its message.
    Place,
    /// Nothing yet: it has to wait, and is counted upon to do so.
    Wait,
    /// Nothing: the process has ended, or no sender waits any more.
    Refused,
}

/// The duty of a worker that has given places back.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nothing.
    Free,
    /// A sender waits: the worker must serve the waiters.
    Awaited,
}

impl Room {
    /// Of an empty mailbox.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a place if there is one and no sender waits.
    pub(crate) fn take(&self, limit: usize) -> bool {
        let is_free = |word: u64| word & (HAS_WAITERS | CLOSED) == 0 && has_room(word, limit);
        let take = |word: u64| is_free(word).then_some(word + MESSAGE);
        // Ordering: Relaxed: a count; the mailbox itself orders the messages.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Takes all free places, up to `most`, if no sender waits. Returns how many it took.
    pub(crate) fn take_up_to(&self, limit: usize, most: usize) -> usize {
        let free = |word: u64| {
            let is_open = word & (HAS_WAITERS | CLOSED) == 0;
            let left = limit.saturating_sub(message_count(word)).min(most);
            if is_open { left } else { 0 }
        };
        let take = |word: u64| match free(word) {
            0 => None,
            places => Some(word + places as u64 * MESSAGE),
        };
        // Ordering: Relaxed: as in `take`.
        let taken = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_or(0, free)
    }

    /// Takes a place for a control message if there is one.
    pub(crate) fn take_control(&self, limit: usize) -> bool {
        let is_free = |word: u64| word & CLOSED == 0 && word / CONTROL < limit as u64;
        let take = |word: u64| is_free(word).then(|| word + CONTROL);
        // Ordering: Relaxed: as in `take`.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Takes a place if there is one and no sender waits; otherwise sets `HAS_WAITERS`. The caller
    /// holds the lock of the waiters.
    pub(crate) fn take_or_wait(&self, limit: usize) -> Taken {
        let mut taken = Taken::Refused;
        let take = |word: u64| {
            let next;
            (taken, next) = if word & CLOSED != 0 {
                (Taken::Refused, word)
            } else if word & HAS_WAITERS == 0 && has_room(word, limit) {
                (Taken::Place, word + MESSAGE)
            } else {
                (Taken::Wait, word | HAS_WAITERS)
            };
            Some(next)
        };
        // Ordering: Relaxed: the operations on the word have one order, and a giver that reads
        // `HAS_WAITERS` in it takes the lock next.
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken
    }

    /// Takes a place if there is one and no sender waits. The caller does not wait.
    pub(crate) fn take_or_refuse(&self, limit: usize) -> Taken {
        if self.take(limit) {
            Taken::Place
        } else {
            Taken::Refused
        }
    }

    /// Takes a place for the first waiter, if there is one. The caller holds the lock of the
    /// waiters.
    pub(crate) fn take_for_waiter(&self, limit: usize) -> bool {
        let is_free = |word: u64| word & CLOSED == 0 && has_room(word, limit);
        let take = |word: u64| is_free(word).then_some(word + MESSAGE);
        // Ordering: Relaxed: as in `take`.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// No sender waits any more. The caller holds the lock of the waiters.
    pub(crate) fn forget_waiters(&self) {
        // Ordering: Relaxed: the lock orders all writers of the mark.
        self.0.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
    }

    /// Gives back the places of messages that have left the mailbox: so many times [`MESSAGE`], and
    /// [`CONTROL`].
    #[inline]
    pub(crate) fn give(&self, places: u64) -> Given {
        // Ordering: Relaxed: as in `take` and `take_or_wait`.
        let before = self.0.fetch_sub(places, Ordering::Relaxed);
        debug_assert!(
            messages(before) >= messages(places) && before / CONTROL >= places / CONTROL,
            "more places than were taken"
        );
        if before & HAS_WAITERS == 0 {
            Given::Free
        } else {
            Given::Awaited
        }
    }

    /// The process has ended. Returns whether a sender waits.
    pub(crate) fn close(&self) -> bool {
        // Ordering: Relaxed: as in `take_or_wait`.
        self.0.fetch_or(CLOSED, Ordering::Relaxed) & HAS_WAITERS != 0
    }

    /// Whether the process has ended. A waiter that the end has woken sees it under the lock of the
    /// waiters.
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed: the lock orders it after `close`.
        self.0.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// How many messages there are.
    pub(crate) fn messages(&self) -> usize {
        // Ordering: Relaxed: for display only.
        message_count(self.0.load(Ordering::Relaxed))
    }

    /// How many messages there are, and whether a sender waits.
    #[cfg(test)]
    pub(crate) fn snapshot(&self) -> (u64, bool) {
        // Ordering: Relaxed: for tests that have joined all others.
        let word = self.0.load(Ordering::Relaxed);
        (messages(word), word & HAS_WAITERS != 0)
    }
}

/// The messages that a word counts.
fn messages(word: u64) -> u64 {
    word % CONTROL / MESSAGE
}

fn message_count(word: u64) -> usize {
    // The count has fewer bits than any `usize` here.
    usize::try_from(messages(word)).unwrap_or(MAX_LIMIT)
}

fn has_room(word: u64, limit: usize) -> bool {
    messages(word) < limit as u64
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    // pins: P13
    #[test]
    fn nobody_overtakes_those_who_wait() {
        let room = Room::new();
        assert!(room.take(1) && !room.take(1));
        assert_eq!(room.take_or_wait(1), Taken::Wait);
        assert_eq!(room.give(MESSAGE), Given::Awaited);
        assert!(!room.take(1), "the place is for one who waits");
        assert_eq!(room.take_or_wait(1), Taken::Wait);
        assert!(room.take_for_waiter(1) && !room.take_for_waiter(1));
        room.forget_waiters();
        assert_eq!(room.give(MESSAGE), Given::Free);
        assert_eq!(room.take_or_wait(1), Taken::Place);
        assert_eq!(room.snapshot(), (1, false));
    }

    // pins: P13
    #[test]
    fn as_many_places_are_taken_as_there_are() {
        for limit in [10, MAX_LIMIT] {
            let room = Room(AtomicU64::new((limit as u64 - 7) * MESSAGE + 3 * CONTROL));
            let taken = [4, 0, 1, usize::MAX, 1].map(|most| room.take_up_to(limit, most));
            assert_eq!(taken, [4, 0, 1, 2, 0]);
            assert_eq!(room.snapshot(), (limit as u64, false));
            assert_eq!(room.take_or_wait(limit), Taken::Wait);
            assert_eq!(room.give(MESSAGE), Given::Awaited);
            assert_eq!(
                room.take_up_to(limit, 1),
                0,
                "the place is for one who waits"
            );
            assert_eq!(room.give(3 * CONTROL), Given::Awaited);
        }
        let closed = Room::new();
        assert!(!closed.close());
        assert_eq!(closed.take_up_to(10, 5), 0);
    }

    // pins: P13
    #[test]
    fn control_messages_and_the_others_take_nothing_from_each_other() {
        for limit in [1, MAX_LIMIT] {
            let filled = Room(AtomicU64::new((limit as u64 - 1) * (MESSAGE + CONTROL)));
            assert!(filled.take(limit) && !filled.take(limit));
            assert_eq!(filled.take_or_wait(limit), Taken::Wait);
            assert!(filled.take_control(limit) && !filled.take_control(limit));
            assert_eq!(filled.snapshot(), (limit as u64, true));
            // A place of the one kind is none of the other.
            assert_eq!(filled.give(CONTROL), Given::Awaited);
            assert!(!filled.take_for_waiter(limit));
            assert!(filled.take_control(limit) && !filled.take_control(limit));
            assert_eq!(filled.give(MESSAGE), Given::Awaited);
            assert!(!filled.take_control(limit));
            assert!(filled.take_for_waiter(limit));
            filled.forget_waiters();
            let all = limit as u64 * (MESSAGE + CONTROL);
            assert_eq!(filled.give(all), Given::Free);
            assert_eq!(filled.snapshot(), (0, false));
        }
    }

    // pins: P13
    #[test]
    fn a_closed_room_has_no_places() {
        let room = Room::new();
        assert!(!room.close() && room.is_closed());
        assert!(!room.take(1) && !room.take_for_waiter(1) && !room.take_control(1));
        assert_eq!(room.take_or_wait(1), Taken::Refused);
        let awaited = Room::new();
        assert_eq!(awaited.take_or_wait(0), Taken::Wait);
        assert!(awaited.close());
    }
}
