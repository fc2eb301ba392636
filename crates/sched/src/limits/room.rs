//! The number of messages and control messages in a limited mailbox, with the mark of waiting
//! senders: one word.
//!
//! A place is for one message, and is taken before the message is pushed. The worker that runs the
//! process gives places back. `HAS_WAITERS` changes under the lock of [`Waiters`] alone. The
//! worker that ends the process sets `CLOSED` once.
//!
//! Control messages have places of their own, up to the same limit. So a mailbox full of messages
//! still takes control messages. No sender waits for a control place, and a waiter for a message
//! place does not hinder control messages. Until `CLOSED` is set, `take_control` takes a place
//! below the limit.
//!
//! **Lots.** Serving a waiting sender wakes a thread, so the worker does it for many places at a
//! time. The worker serves the waiters when at most a quarter of the limit is in the mailbox. A
//! process may leave more messages there. So the worker serves waiters for any room when a step has
//! taken no message, when the process is about to wait for an event, and when its step announces a
//! block. Of a limit below four, a quarter is nothing, and the process and its senders would take
//! turns. So there any room is enough.
//!
//! | messages | `HAS_WAITERS` | `CLOSED` | `take` | `take_or_wait` | `take_for_waiter` |
//! |---|---|---|---|---|---|
//! | below the limit | no | no | a place | a place | a place |
//! | at the limit | no | no | nothing | waits: sets `HAS_WAITERS` | nothing |
//! | any | yes | no | nothing | waits | a place below the limit |
//! | any | any | yes | nothing | is told | nothing |
//!
//! The mark is in the same word as the count. So the operation that gives a place back also reads
//! whether a sender waits, and a later sender does not overtake the waiters.
//!
//! [`Waiters`]: crate::limits::waiters::Waiters

use crate::config::MAX_LIMIT;
use ganger_sync::atomic::{AtomicU64, Ordering};

/// A sender waits for room.
const HAS_WAITERS: u64 = 1;
/// The process has ended.
const CLOSED: u64 = 1 << 1;
/// Waiters are served when this part of the limit is in the mailbox, or less.
const LEFT: u64 = 4;
/// A message; the count is in the bits from here up to those of the control messages.
pub(crate) const MESSAGE: u64 = 1 << 2;
/// A control message; the count is in the bits from here on.
pub(crate) const CONTROL: u64 = 1 << 33;

const _: () = assert!(MAX_LIMIT as u64 == CONTROL / MESSAGE - 1 && CONTROL == 1 << (64 - 31));

/// The limit of a mailbox: none, or at most [`MAX_LIMIT`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(u32);

impl Limit {
    /// Any number.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// Makes a limit; a number above [`MAX_LIMIT`] counts as [`MAX_LIMIT`].
    pub(crate) fn of(messages: usize) -> Self {
        Self(u32::try_from(messages.min(MAX_LIMIT)).unwrap_or(u32::MAX >> 1))
    }

    /// Returns the number, if limited.
    #[inline(always)]
    pub(crate) fn get(self) -> Option<usize> {
        (self != Self::NONE).then_some(self.0 as usize)
    }
}

/// The room of a mailbox. Unused without a limit.
pub(crate) struct Room(AtomicU64);

/// The result for a sender ready to wait.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A place: it may push its message.
    Place,
    /// Nothing yet: the sender has to wait, and is relied upon to do so.
    Wait,
    /// Nothing: the process has ended, or no sender waits any more.
    Refused,
}

/// The duty of a worker after it has given places back.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nothing, for the moment.
    Free,
    /// A sender waits, and the room is enough: the worker must serve the waiters.
    Awaited,
}

impl Room {
    /// Creates the count of an empty mailbox.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Takes a place if one is free and no sender waits.
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
        // Ordering: Relaxed: the operations on the word have one order, as for `take`.
        let taken = (self.0).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map_or(0, free)
    }

    /// Takes a place for a control message if one is free.
    pub(crate) fn take_control(&self, limit: usize) -> bool {
        let is_free = |word: u64| word & CLOSED == 0 && word / CONTROL < limit as u64;
        let take = |word: u64| is_free(word).then(|| word + CONTROL);
        // Ordering: Relaxed: the operations on the word have one order, as for `take`.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Takes a place if one is free and no sender waits; otherwise sets `HAS_WAITERS`. The caller
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

    /// Takes a place if one is free and no sender waits. The caller does not wait.
    pub(crate) fn take_or_refuse(&self, limit: usize) -> Taken {
        if self.take(limit) {
            Taken::Place
        } else {
            Taken::Refused
        }
    }

    /// Takes a place for the first waiter, if one is free. The caller holds the lock of the
    /// waiters.
    pub(crate) fn take_for_waiter(&self, limit: usize) -> bool {
        let is_free = |word: u64| word & CLOSED == 0 && has_room(word, limit);
        let take = |word: u64| is_free(word).then_some(word + MESSAGE);
        // Ordering: Relaxed: the operations on the word have one order, as for `take`.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Takes the mark of waiting senders away, when the last has left. The caller holds the lock of
    /// the waiters.
    pub(crate) fn forget_waiters(&self) {
        // Ordering: Relaxed: the lock orders all writers of the mark.
        self.0.fetch_and(!HAS_WAITERS, Ordering::Relaxed);
    }

    /// Gives back the places of messages out of the mailbox: the sum of their [`MESSAGE`] and
    /// [`CONTROL`]. A worker without a message's place to give back asks whether waiters have any
    /// room.
    pub(crate) fn give(&self, places: u64, limit: usize) -> Given {
        // Ordering: Relaxed: as in `take` and `take_or_wait`. Each owner of the run token sees all
        // that its predecessor has seen.
        let before = match places {
            0 => self.0.load(Ordering::Relaxed),
            _ => self.0.fetch_sub(places, Ordering::Relaxed),
        };
        debug_assert!(
            messages(before) >= messages(places) && before / CONTROL >= places / CONTROL,
            "more places than were taken"
        );
        let after = before - places;
        let left = limit as u64 / LEFT;
        let is_enough = messages(places) == 0 || left == 0 || messages(after) <= left;
        if after & HAS_WAITERS != 0 && has_room(after, limit) && is_enough {
            Given::Awaited
        } else {
            Given::Free
        }
    }

    /// Closes the mailbox of a process that has ended. Returns whether a sender waits.
    pub(crate) fn close(&self) -> bool {
        // Ordering: Relaxed: as in `take_or_wait`.
        self.0.fetch_or(CLOSED, Ordering::Relaxed) & HAS_WAITERS != 0
    }

    /// Returns whether the process has ended. A waiter woken by the end sees `true` under the lock
    /// of the waiters.
    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed: the lock orders it after `close`.
        self.0.load(Ordering::Relaxed) & CLOSED != 0
    }

    /// Returns the number of messages.
    pub(crate) fn messages(&self) -> usize {
        // Ordering: Relaxed: for display only.
        message_count(self.0.load(Ordering::Relaxed))
    }

    /// Returns the number of messages, and whether a sender waits.
    #[cfg(test)]
    pub(crate) fn snapshot(&self) -> (u64, bool) {
        // Ordering: Relaxed: for tests that have joined all other threads.
        let word = self.0.load(Ordering::Relaxed);
        (messages(word), word & HAS_WAITERS != 0)
    }
}

/// Returns the number of messages in a word.
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
    use proptest::collection::vec;
    use proptest::prelude::*;

    // pins: P13
    #[test]
    fn nobody_overtakes_those_who_wait() {
        let room = Room::new();
        assert!(room.take(1) && !room.take(1));
        assert_eq!(room.take_or_wait(1), Taken::Wait);
        assert_eq!(room.give(MESSAGE, 1), Given::Awaited);
        assert!(!room.take(1), "the place is for one who waits");
        assert_eq!(room.take_or_wait(1), Taken::Wait);
        assert!(room.take_for_waiter(1) && !room.take_for_waiter(1));
        room.forget_waiters();
        assert_eq!(room.give(MESSAGE, 1), Given::Free);
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
            assert_eq!(room.give(MESSAGE, limit), Given::Free);
            assert_eq!(room.give(0, limit), Given::Awaited);
            assert_eq!(
                room.take_up_to(limit, 1),
                0,
                "the place is for one who waits"
            );
            assert_eq!(room.give(3 * CONTROL, limit), Given::Awaited);
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
            // A message's place is not a control place, nor the other way round.
            assert_eq!(filled.give(CONTROL, limit), Given::Free);
            assert!(!filled.take_for_waiter(limit));
            assert!(filled.take_control(limit) && !filled.take_control(limit));
            let enough = if limit == 1 {
                Given::Awaited
            } else {
                Given::Free
            };
            assert_eq!(filled.give(MESSAGE, limit), enough);
            assert!(!filled.take_control(limit));
            assert!(filled.take_for_waiter(limit));
            filled.forget_waiters();
            let all = limit as u64 * (MESSAGE + CONTROL);
            assert_eq!(filled.give(all, limit), Given::Free);
            assert_eq!(filled.snapshot(), (0, false));
        }
    }

    // pins: P13
    #[test]
    fn waiters_are_served_when_a_quarter_is_left() {
        for (limit, left) in [
            (1, 0),
            (3, 2),
            (4, 1),
            (1_024, 256),
            (MAX_LIMIT, MAX_LIMIT / 4),
        ] {
            let full = limit as u64 * MESSAGE;
            let give = |places: usize| {
                let room = Room(AtomicU64::new(full | HAS_WAITERS));
                let given = room.give(places as u64 * MESSAGE, limit);
                (given, room.give(0, limit))
            };
            assert_eq!(give(limit - left).0, Given::Awaited, "{limit}");
            assert_eq!(give(limit), (Given::Awaited, Given::Awaited), "{limit}");
            assert_eq!(give(0), (Given::Free, Given::Free), "{limit}");
            if limit > 3 {
                // For a process that leaves the rest of its messages in the mailbox.
                assert_eq!(
                    give(limit - left - 1),
                    (Given::Free, Given::Awaited),
                    "{limit}"
                );
            }
            let unawaited = Room(AtomicU64::new(full));
            assert_eq!(unawaited.give(full, limit), Given::Free, "{limit}");
        }
    }

    /// The expected behaviour of a room, without bits.
    #[derive(Default)]
    struct Plain {
        messages: usize,
        do_wait: bool,
    }

    proptest! {
        // pins: P13
        #[test]
        fn rooms_are_as_a_plain_count(
            limit in 1_usize..20,
            calls in vec((0_u8..6, 0_usize..9), 1..100),
        ) {
            let (room, mut plain) = (Room::new(), Plain::default());
            for (call, number) in calls {
                let has_room = plain.messages < limit;
                let is_free = has_room && !plain.do_wait;
                match call {
                    0 => {
                        prop_assert_eq!(room.take(limit), is_free);
                        plain.messages += usize::from(is_free);
                    }
                    1 => {
                        let expected = if is_free { Taken::Place } else { Taken::Wait };
                        prop_assert_eq!(room.take_or_wait(limit), expected);
                        plain.messages += usize::from(is_free);
                        plain.do_wait |= !is_free;
                    }
                    2 => {
                        prop_assert_eq!(room.take_for_waiter(limit), has_room);
                        plain.messages += usize::from(has_room);
                    }
                    3 => {
                        room.forget_waiters();
                        plain.do_wait = false;
                    }
                    4 => {
                        let most = if plain.do_wait { 0 } else { limit - plain.messages };
                        prop_assert_eq!(room.take_up_to(limit, number), number.min(most));
                        plain.messages += number.min(most);
                    }
                    _ => {
                        let places = number.min(plain.messages);
                        plain.messages -= places;
                        let is_enough = places == 0 || limit < 4 || 4 * plain.messages <= limit;
                        let is_due = plain.do_wait && plain.messages < limit && is_enough;
                        let expected = if is_due { Given::Awaited } else { Given::Free };
                        prop_assert_eq!(room.give(places as u64 * MESSAGE, limit), expected);
                    }
                }
                prop_assert_eq!(room.snapshot(), (plain.messages as u64, plain.do_wait));
            }
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
