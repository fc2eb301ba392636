//! The state of a channel, under its lock.
//!
//! **Rules.**
//! 1. A value goes to the first waiting receiver; otherwise into the buffer, if it has room;
//!    otherwise its sender waits, with the value in its entry.
//! 2. A receiver takes the head of the buffer, and the value of the first waiting sender goes to
//!    the tail at once. With an empty buffer the receiver takes the sender's value itself.
//! 3. So receivers wait only beside an empty buffer, and senders only beside a full buffer, except
//!    for busy selects, which check again.
//! 4. A receiver that was served and is dropped before it has taken its value gives it back. The
//!    value goes to the first waiting receiver, or else in front of the buffer. Received values
//!    have numbers, so that several returned values keep their order.
//!
//! 5. A value is *claimed* from the moment it is handed to a waiting receiver until this receiver
//!    has taken it for good, or gives it back. While a value is claimed, receivers of a closed
//!    channel do not yet see the end: the value may come back.
//!
//! No waiter is woken, and no value dropped, under the lock: each function returns them to its
//! caller. A waker is cloned before the lock is taken.
//!
//! **Memory.** The buffer and the table of entries lose the room of a burst as they are emptied.

use crate::entries::{Entries, Key, Remains, Stage, Wake, WakeTarget};
use crate::error::{RecvError, SendError};
use ganger_sync::{WaitList, shrink_after_burst};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem;
use std::task::Waker;

/// A buffer with room for at most this many values does not shrink.
pub(crate) const KEPT: usize = 64;

/// In this order, as few cache lines as may be go from worker to worker.
#[repr(C)]
pub(crate) struct State<T> {
    is_closed: bool,
    senders: WaitList,
    receivers: WaitList,
    buffer: VecDeque<T>,
    capacity: usize,
    /// The number of the value received last.
    number: u64,
    /// How many values are claimed.
    claims: usize,
    /// Values that came back, the smallest numbers last.
    returned: Vec<(u64, T)>,
    entries: Entries<T>,
}

/// The waiters to be woken at a close.
pub(crate) type Wakes = SmallVec<[Wake; 4]>;

impl<T> State<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            is_closed: false,
            senders: WaitList::default(),
            receivers: WaitList::default(),
            buffer: VecDeque::new(),
            capacity,
            number: 0,
            claims: 0,
            returned: Vec::new(),
            entries: Entries::new(),
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

    /// Sends a value without waiting.
    // A call would return the value through memory, as two words that are read as one: a stall.
    #[inline(always)]
    pub(crate) fn send(&mut self, value: T) -> Result<Option<Wake>, SendError<T>> {
        if self.is_closed {
            return Err(SendError::Closed(value));
        }
        let len = self.len();
        if len == 0 && !self.receivers.is_empty() {
            let number = self.next();
            match self.hand(number, value) {
                Ok(wake) => return Ok(Some(wake)),
                Err(value) => return self.store(len, value),
            }
        }
        self.store(len, value)
    }

    /// Puts a value into the buffer of this length, if it has room.
    #[inline(always)]
    fn store(&mut self, len: usize, value: T) -> Result<Option<Wake>, SendError<T>> {
        if len < self.capacity {
            self.buffer.push_back(value);
            return Ok(None);
        }
        Err(SendError::Full(value))
    }

    /// Hands a value to the first waiting receiver.
    #[inline(always)]
    fn hand(&mut self, number: u64, value: T) -> Result<Wake, T> {
        match self.entries.serve(&mut self.receivers, Stage::Met) {
            Some((key, wake)) => {
                let entry = self.entries.at(key);
                entry.value = Some(value);
                entry.number = number;
                self.claims += 1;
                Ok(wake)
            }
            None => Err(value),
        }
    }

    /// Receives without waiting: returns the value, and its number.
    // As `send`.
    #[inline(always)]
    pub(crate) fn recv(&mut self) -> Result<((u64, T), Option<Wake>), RecvError> {
        if !self.returned.is_empty() {
            return self.recv_returned();
        }
        if let Some(value) = self.buffer.pop_front() {
            shrink_after_burst(&mut self.buffer, KEPT);
            let number = self.next();
            let wake = if self.senders.is_empty() {
                None
            } else {
                self.refill()
            };
            return Ok(((number, value), wake));
        }
        if !self.senders.is_empty()
            && let Some((value, wake)) = self.take_from_sender()
        {
            return Ok(((self.next(), value), Some(wake)));
        }
        if self.is_closed && self.claims == 0 {
            return Err(RecvError::Closed);
        }
        Err(RecvError::Empty)
    }

    /// As [`recv`](Self::recv), if a value has come back.
    #[cold]
    fn recv_returned(&mut self) -> Result<((u64, T), Option<Wake>), RecvError> {
        let value = self.returned.pop().ok_or(RecvError::Empty)?;
        shrink_after_burst(&mut self.returned, KEPT);
        Ok((value, self.refill()))
    }

    /// Moves the value of the first waiting sender to the tail, if the buffer has room.
    fn refill(&mut self) -> Option<Wake> {
        if self.len() >= self.capacity {
            return None;
        }
        let (next, wake) = self.take_from_sender()?;
        self.buffer.push_back(next);
        Some(wake)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    #[inline(always)]
    fn take_from_sender(&mut self) -> Option<(T, Wake)> {
        let (key, wake) = self.entries.serve(&mut self.senders, Stage::Met)?;
        let value = self.entries.at(key).value.take()?;
        Some((value, wake))
    }

    /// Adds an entry for a sender, after sending has failed.
    #[inline(always)]
    pub(crate) fn enlist_sender(&mut self, value: T, target: WakeTarget) -> Key {
        self.entries.push(&mut self.senders, target, Some(value))
    }

    /// Adds an entry for a receiver, after receiving has failed.
    #[inline(always)]
    pub(crate) fn enlist_receiver(&mut self, target: WakeTarget) -> Key {
        self.entries.push(&mut self.receivers, target, None)
    }

    /// Returns `None` if the wait is over, and otherwise whether `waker` is woken at its end.
    #[inline]
    pub(crate) fn still_waits(&mut self, key: Key, waker: &Waker) -> Option<bool> {
        self.entries.still_waits(key, waker)
    }

    /// Sets the waker of a wait, if it goes on. Returns the waker to be dropped.
    pub(crate) fn change_waker(&mut self, key: Key, waker: Waker) -> Result<Option<Waker>, Waker> {
        self.entries.change_waker(key, waker)
    }

    /// Takes the value of a waiting sender, to try whether it can be sent now.
    pub(crate) fn value_of(&mut self, key: Key) -> Option<T> {
        self.entries.at(key).value.take()
    }

    /// Returns an unsent value to its entry.
    pub(crate) fn keep_value(&mut self, key: Key, value: T) {
        self.entries.at(key).value = Some(value);
    }

    /// Removes the sender's entry. Returns the value if it was not sent, and what the caller must
    /// drop without the lock.
    #[inline(always)]
    pub(crate) fn leave_sender(&mut self, key: Key) -> (Remains, Option<T>) {
        let (remains, value, _) = self.entries.take(&mut self.senders, key);
        (remains, value)
    }

    /// Removes the receiver's entry. Returns the value and its number if it was served; the value
    /// is still claimed.
    #[inline(always)]
    pub(crate) fn leave_receiver(&mut self, key: Key) -> (Remains, Option<(u64, T)>) {
        let (remains, value, number) = self.entries.take(&mut self.receivers, key);
        (remains, value.map(|value| (number, value)))
    }

    /// Claims a value that was received without waiting, as it may come back.
    pub(crate) fn claim(&mut self) {
        self.claims += 1;
    }

    /// Settles a claimed value, which does not come back.
    #[inline]
    pub(crate) fn settle(&mut self) -> Option<Wakes> {
        self.claims -= 1;
        (self.claims == 0 && self.is_closed).then(|| self.end_receivers())
    }

    /// Takes a claimed value back.
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

    /// Closes the channel, and ends all waits. Returns `false` if it was already closed.
    pub(crate) fn close(&mut self) -> (bool, Wakes) {
        let was_open = !mem::replace(&mut self.is_closed, true);
        let mut wakes = Self::end_all(&mut self.entries, &mut self.senders);
        if self.claims == 0 {
            wakes.extend(self.end_receivers());
        }
        (was_open, wakes)
    }

    /// Ends the waits of all receivers.
    #[cold]
    fn end_receivers(&mut self) -> Wakes {
        Self::end_all(&mut self.entries, &mut self.receivers)
    }

    fn end_all(entries: &mut Entries<T>, list: &mut WaitList) -> Wakes {
        let mut wakes = Wakes::new();
        while let Some((_, wake)) = entries.serve(list, Stage::Closed) {
            wakes.push(wake);
        }
        wakes
    }

    /// Takes all values out, as all receivers are gone.
    pub(crate) fn clear(&mut self) -> (VecDeque<T>, Vec<(u64, T)>) {
        (mem::take(&mut self.buffer), mem::take(&mut self.returned))
    }
}
