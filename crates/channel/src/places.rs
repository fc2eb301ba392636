//! The places of those that wait at one end of a channel, first come first served.
//!
//! **Problem.** One that waits may leave from the middle, by a number that costs no search. A wait
//! should allocate nothing.
//!
//! **Protocol.** All places of a channel are in one table, which is guarded by the channel's lock.
//! Those that wait are linked; the others keep an outcome until it is taken.

use crate::claim::{Chosen, Claim};
use ganger_sync::Table;
use std::sync::Arc;
use std::task::Waker;

/// Which place in the table.
pub(crate) type Key = u32;

const NONE: u32 = u32::MAX;

/// What is told when a wait is over.
#[derive(Debug)]
pub(crate) enum Told {
    /// A wait at this channel alone.
    One(Waker),
    /// A select that waits here for the case of that number.
    Select(Arc<Claim>, usize),
}

/// How far a wait has come.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It is linked, and this is told when it is over.
    Waiting(Told),
    /// The value has gone from the sender, or has come to the receiver.
    Met,
    /// The channel is closed. The value of a sender is still there.
    Closed,
    /// Another case of its select has been chosen.
    TooLate,
}

pub(crate) struct Place<T> {
    pub(crate) stage: Stage,
    /// Of a sender that waits, what it sends; of a receiver that has been served, what it gets,
    /// with its number.
    pub(crate) value: Option<T>,
    pub(crate) number: u64,
    before: u32,
    after: u32,
}

/// All places of a channel.
pub(crate) struct Places<T> {
    all: Table<Place<T>>,
}

/// Those that wait at one end.
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

    /// A new place at the end of the line. O(1), amortised.
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

    /// The first of the line that can be served: it waits no longer, and the stage is its next.
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
            // With a claim that is too late goes no waker: its select has another, or the thread
            // that has chosen it has.
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

    /// Whether that wait goes on, and if so, whether this waker is woken at its end.
    #[inline]
    pub(crate) fn still_waits(&mut self, key: Key, waker: &Waker) -> Option<bool> {
        match &self.at(key).stage {
            Stage::Waiting(Told::One(its)) => Some(its.will_wake(waker)),
            Stage::Waiting(Told::Select(..)) => Some(true),
            _ => None,
        }
    }

    /// The place is of no use any longer, wherever it is. What it keeps comes back.
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
