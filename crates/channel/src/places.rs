//! The places of the waiters at each end of a channel, first come first served.
//!
//! **Problem.** A waiter may leave from the middle, by a number, without a search. A wait should
//! allocate nothing.
//!
//! **Protocol.** All places of a channel are in a table, guarded by the channel's lock. The places
//! of waiters are linked; the other places keep an outcome until it is taken.

use crate::claim::{Chosen, Claim};
use ganger_sync::Table;
use std::sync::Arc;
use std::task::Waker;

/// The number of a place in the table.
pub(crate) type Key = u32;

const NONE: u32 = u32::MAX;

/// The waiter to be woken when a wait is over.
#[derive(Debug)]
pub(crate) enum Told {
    /// A wait at this channel alone.
    One(Waker),
    /// A select that waits here for the case with this number.
    Select(Arc<Claim>, usize),
}

/// The state of a wait.
#[derive(Debug)]
pub(crate) enum Stage {
    /// The place is linked, and `Told` is woken at the end.
    Waiting(Told),
    /// The sender's value has been taken, or the receiver's value has come.
    Met,
    /// The channel is closed. The place still has the value of a sender.
    Closed,
    /// Another case of its select has been chosen.
    TooLate,
}

pub(crate) struct Place<T> {
    pub(crate) stage: Stage,
    /// The value of a waiting sender; of a served receiver, the received value, with its number.
    pub(crate) value: Option<T>,
    pub(crate) number: u64,
    before: u32,
    after: u32,
}

/// All places of a channel.
pub(crate) struct Places<T> {
    all: Table<Place<T>>,
}

/// The waiters at an end.
#[derive(Debug)]
pub(crate) struct Line {
    first: u32,
    last: u32,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

impl Line {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl<T> Places<T> {
    pub(crate) const fn new() -> Self {
        Self { all: Table::new() }
    }

    #[inline]
    pub(crate) fn at(&mut self, key: Key) -> &mut Place<T> {
        match self.all.get_mut(key) {
            Some(place) => place,
            None => unreachable!("its owner takes it once"),
        }
    }

    /// Adds a place at the end of the line. O(1), amortised.
    #[inline]
    pub(crate) fn push(&mut self, line: &mut Line, told: Told, value: Option<T>) -> Key {
        let key = self.all.insert(Place {
            stage: Stage::Waiting(told),
            value,
            number: 0,
            before: line.last,
            after: NONE,
        });
        match line.last {
            NONE => line.first = key,
            last => self.at(last).after = key,
        }
        line.last = key;
        key
    }

    /// Serves the first waiter of the line that can be served: its next stage is `next()`.
    #[inline]
    pub(crate) fn serve(&mut self, line: &mut Line, next: fn() -> Stage) -> Option<(Key, Told)> {
        let mut key = line.first;
        while key != NONE {
            let place = self.at(key);
            let after = place.after;
            let stage = match &place.stage {
                Stage::Waiting(Told::Select(claim, case)) => match claim.choose(*case) {
                    Chosen::Yes => next(),
                    Chosen::Busy => {
                        key = after;
                        continue;
                    }
                    Chosen::TooLate => Stage::TooLate,
                },
                _ => next(),
            };
            // A late claim has no waker to return: its select has another waker, or the choosing
            // thread has it.
            let is_served = !matches!(stage, Stage::TooLate);
            let before = std::mem::replace(&mut place.stage, stage);
            self.unlink(line, key);
            if is_served && let Stage::Waiting(told) = before {
                return Some((key, told));
            }
            key = after;
        }
        None
    }

    /// Returns `None` if the wait is over, and otherwise whether `waker` is woken at its end.
    #[inline]
    pub(crate) fn still_waits(&mut self, key: Key, waker: &Waker) -> Option<bool> {
        match &self.at(key).stage {
            Stage::Waiting(Told::One(its)) => Some(its.will_wake(waker)),
            Stage::Waiting(Told::Select(..)) => Some(true),
            _ => None,
        }
    }

    /// Removes a place in any stage. Returns its contents.
    #[inline]
    pub(crate) fn take(&mut self, line: &mut Line, key: Key) -> (Stage, Option<T>, u64) {
        if matches!(self.at(key).stage, Stage::Waiting(_)) {
            self.unlink(line, key);
        }
        match self.all.remove(key) {
            Some(place) => (place.stage, place.value, place.number),
            None => unreachable!("its owner takes it once"),
        }
    }

    #[inline]
    fn unlink(&mut self, line: &mut Line, key: Key) {
        let &mut Place { before, after, .. } = self.at(key);
        match before {
            NONE => line.first = after,
            before => self.at(before).after = after,
        }
        match after {
            NONE => line.last = before,
            after => self.at(after).before = before,
        }
    }
}
