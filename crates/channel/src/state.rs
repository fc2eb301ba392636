//! What a channel is, under its lock.
//!
//! **Rules.**
//! 1. A value goes to the first receiver that waits; otherwise into the buffer, if that has room;
//!    otherwise its sender waits, with the value in its place.
//! 2. A receiver takes the head of the buffer, and the value of the first sender that waits goes to
//!    the tail at once. With an empty buffer it takes that value itself.
//! 3. So receivers wait only beside an empty buffer, and senders only beside a full one: but for
//!    selects that are busy, which look again.
//! 4. A receiver that was served and is dropped before it has taken its value gives it back. The
//!    value goes to the first that waits, or else in front of the buffer. Values that were
//!    received have numbers, so that several which come back keep their order.
//!
//! 5. A value is *claimed* from the moment in which a receiver that waits is handed it until that
//!    receiver has taken it for good, or gives it back. While there is a claim, no receiver of a
//!    closed channel is told that all has been received: it waits for what may come back.
//!
//! Nothing is woken, and no value dropped, under the lock: each act returns what its caller owes. A
//! waker is cloned before the lock is taken.
//!
//! **Memory.** The buffer and the table of places lose the room of a burst as they are emptied.

use crate::error::{RecvError, SendError};
use crate::places::{Key, Line, Places, Stage, Told};
use ganger_sync::shrink_after_burst;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// A buffer with room for so many values does not shrink.
pub(crate) const KEPT: usize = 64;

pub(crate) struct State<T> {
    buffer: VecDeque<T>,
    /// Values that came back, those with the smallest numbers last.
    returned: Vec<(u64, T)>,
    capacity: usize,
    places: Places<T>,
    senders: Line,
    receivers: Line,
    is_closed: bool,
    /// How many values are claimed.
    claims: usize,
    /// Of the value that was received last.
    number: u64,
}

/// What is to be woken, once the lock is free.
#[must_use = "one that waits is to be woken"]
#[derive(Debug)]
pub(crate) struct Wake(pub(crate) Told);

impl Wake {
    #[inline]
    pub(crate) fn wake(self) {
        match self.0 {
            Told::One(waker) => waker.wake(),
            Told::Select(claim, _) => {
                if let Some(waker) = claim.take_waker() {
                    waker.wake();
                }
            }
        }
    }
}

/// Those to be woken at a close.
pub(crate) type Wakes = SmallVec<[Wake; 4]>;

impl<T> State<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            buffer: VecDeque::new(),
            returned: Vec::new(),
            capacity,
            places: Places::new(),
            senders: Line::default(),
            receivers: Line::default(),
            is_closed: false,
            claims: 0,
            number: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.returned.len() + self.buffer.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Sends, without waiting.
    #[inline]
    pub(crate) fn send(&mut self, value: T) -> Result<Option<Wake>, SendError<T>> {
        if self.is_closed {
            return Err(SendError::Closed(value));
        }
        if !self.receivers.is_empty() && self.len() == 0 {
            let number = self.next();
            return match self.hand(number, value) {
                Ok(wake) => Ok(Some(wake)),
                Err(value) => self.store(value),
            };
        }
        self.store(value)
    }

    #[inline]
    fn store(&mut self, value: T) -> Result<Option<Wake>, SendError<T>> {
        if self.len() < self.capacity {
            self.buffer.push_back(value);
            return Ok(None);
        }
        Err(SendError::Full(value))
    }

    /// Hands a value to the first receiver that waits.
    #[inline]
    fn hand(&mut self, number: u64, value: T) -> Result<Wake, T> {
        match self.places.serve(&mut self.receivers, || Stage::Met) {
            Some((key, told)) => {
                let place = self.places.at(key);
                place.value = Some(value);
                place.number = number;
                self.claims += 1;
                Ok(Wake(told))
            }
            None => Err(value),
        }
    }

    /// Receives, without waiting: the value, and its number.
    #[inline]
    pub(crate) fn recv(&mut self) -> Result<((u64, T), Option<Wake>), RecvError> {
        let value = match self.returned.pop() {
            Some(value) => {
                shrink_after_burst(&mut self.returned, KEPT);
                Some(value)
            }
            None => self.buffer.pop_front().map(|value| {
                shrink_after_burst(&mut self.buffer, KEPT);
                (self.next(), value)
            }),
        };
        let Some(value) = value else {
            return match self.take_from_sender() {
                Some((value, wake)) => Ok(((self.next(), value), Some(wake))),
                None if self.is_closed && self.claims == 0 => Err(RecvError::Closed),
                None => Err(RecvError::Empty),
            };
        };
        if self.senders.is_empty() || self.len() >= self.capacity {
            return Ok((value, None));
        }
        let wake = self.take_from_sender().map(|(next, wake)| {
            self.buffer.push_back(next);
            wake
        });
        Ok((value, wake))
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    #[inline]
    fn take_from_sender(&mut self) -> Option<(T, Wake)> {
        let (key, told) = self.places.serve(&mut self.senders, || Stage::Met)?;
        let value = self.places.at(key).value.take()?;
        Some((value, Wake(told)))
    }

    /// A sender takes its place, as sending has failed.
    pub(crate) fn enlist_sender(&mut self, value: T, told: Told) -> Key {
        self.places.push(&mut self.senders, told, Some(value))
    }

    /// A receiver takes its place, as receiving has failed.
    pub(crate) fn enlist_receiver(&mut self, told: Told) -> Key {
        self.places.push(&mut self.receivers, told, None)
    }

    /// Whether that wait goes on, and if so, whether this waker is woken at its end.
    #[inline]
    pub(crate) fn still_waits(&mut self, key: Key, waker: &Waker) -> Option<bool> {
        self.places.still_waits(key, waker)
    }

    /// That waker is woken at the end of the wait, if it goes on. The one before comes back, or
    /// this one.
    pub(crate) fn change_waker(&mut self, key: Key, waker: Waker) -> Result<Waker, Waker> {
        match &mut self.places.at(key).stage {
            Stage::Waiting(Told::One(its)) => Ok(mem::replace(its, waker)),
            _ => Err(waker),
        }
    }

    /// The value of a sender that has its place, to look whether it can be sent now.
    pub(crate) fn value_of(&mut self, key: Key) -> Option<T> {
        self.places.at(key).value.take()
    }

    /// It can't.
    pub(crate) fn keep_value(&mut self, key: Key, value: T) {
        self.places.at(key).value = Some(value);
    }

    /// The sender leaves its place, with its value if that was not sent, and whether the channel is
    /// closed. The stage is to be dropped without the lock.
    pub(crate) fn leave_sender(&mut self, key: Key) -> (Stage, Option<T>) {
        let (stage, value, _) = self.places.take(&mut self.senders, key);
        (stage, value)
    }

    /// The receiver leaves its place, with the value and its number if it was served. The value is
    /// still claimed.
    pub(crate) fn leave_receiver(&mut self, key: Key) -> (Stage, Option<(u64, T)>) {
        let (stage, value, number) = self.places.take(&mut self.receivers, key);
        (stage, value.map(|value| (number, value)))
    }

    /// A value that was received without waiting may come back.
    pub(crate) fn claim(&mut self) {
        self.claims += 1;
    }

    /// A value that was claimed does not come back.
    #[inline]
    pub(crate) fn settle(&mut self) -> Option<Wakes> {
        self.claims -= 1;
        (self.claims == 0 && self.is_closed).then(|| self.end_receivers())
    }

    /// A value that was claimed comes back.
    pub(crate) fn give_back(&mut self, number: u64, value: T) -> Option<Wake> {
        self.claims -= 1;
        match self.hand(number, value) {
            Ok(wake) => Some(wake),
            Err(value) => {
                let at = self.returned.partition_point(|(its, _)| *its > number);
                self.returned.insert(at, (number, value));
                None
            }
        }
    }

    /// Nothing is sent any more. Those that wait are told. `false`: it was closed before.
    pub(crate) fn close(&mut self) -> (bool, Wakes) {
        let was_open = !mem::replace(&mut self.is_closed, true);
        let mut wakes = Self::end_all(&mut self.places, &mut self.senders);
        if self.claims == 0 {
            wakes.extend(self.end_receivers());
        }
        (was_open, wakes)
    }

    /// Nothing is received any more.
    #[cold]
    fn end_receivers(&mut self) -> Wakes {
        Self::end_all(&mut self.places, &mut self.receivers)
    }

    fn end_all(places: &mut Places<T>, line: &mut Line) -> Wakes {
        let mut wakes = Wakes::new();
        while let Some((_, told)) = places.serve(line, || Stage::Closed) {
            wakes.push(Wake(told));
        }
        wakes
    }

    /// All receivers are gone: nothing is received any more.
    pub(crate) fn clear(&mut self) -> (VecDeque<T>, Vec<(u64, T)>) {
        (mem::take(&mut self.buffer), mem::take(&mut self.returned))
    }
}
