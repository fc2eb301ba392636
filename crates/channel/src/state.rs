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
//!    channel do not yet see the end: the value may come back (`settled.rs`).
//!
//! No waiter is woken, and no value dropped, under the lock: each function returns them to its
//! caller. A waker is cloned without the lock, unless it is a process's own, which runs no users'
//! code.
//!
//! **Memory.** The buffer loses the room of a burst as it is emptied.

use crate::entries::{Line, Wake, stage};
use crate::error::{RecvError, SendError};
use crate::settled::Settled;
use ganger_sync::shrink_after_burst;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem;

/// A buffer with room for at most this many values does not shrink.
pub(crate) const KEPT: usize = 64;

/// In this order, as few cache lines as may be go from worker to worker.
#[repr(C)]
pub(crate) struct State<T> {
    is_closed: bool,
    /// Whether it is closed, and no value may come back.
    is_over: bool,
    /// Whether `returned` has values.
    has_returned: bool,
    buffer: VecDeque<T>,
    /// An entry is added when a receive, or a send, has found that it has to wait.
    pub(crate) receivers: Line<T>,
    pub(crate) senders: Line<T>,
    capacity: usize,
    /// How many values have ever been claimed, which is also the number of the last of them.
    claimed: usize,
    /// Values that came back, the smallest numbers last.
    returned: Vec<(usize, T)>,
}

/// The waiters to be woken at a close.
pub(crate) type Wakes = SmallVec<[Wake; 4]>;

impl<T> State<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            is_closed: false,
            is_over: false,
            has_returned: false,
            buffer: VecDeque::new(),
            receivers: Line::new(),
            senders: Line::new(),
            capacity,
            claimed: 0,
            returned: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        let returned = if self.has_returned {
            self.returned.len()
        } else {
            0
        };
        returned + self.buffer.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Puts a value into the buffer, as [`send`](Self::send) does, if no receiver waits.
    #[inline(always)]
    pub(crate) fn store(&mut self, value: T) -> Result<(), T> {
        if self.is_closed || !self.receivers.is_empty() || self.len() >= self.capacity {
            return Err(value);
        }
        self.buffer.push_back(value);
        Ok(())
    }

    /// Takes a value out of the buffer, as [`recv`](Self::recv) does, if no sender waits.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<T> {
        if self.has_returned || !self.senders.is_empty() {
            return None;
        }
        let value = self.buffer.pop_front()?;
        shrink_after_burst(&mut self.buffer, KEPT);
        Some(value)
    }

    /// Sends a value without waiting.
    // A call would return the value through memory, as two words that are read as one: a stall.
    #[inline(always)]
    pub(crate) fn send(&mut self, value: T) -> Result<Option<Wake>, SendError<T>> {
        if self.is_closed {
            return Err(SendError::Closed(value));
        }
        let len = self.len();
        if len == 0
            && let Some(served) = self.receivers.serve()
        {
            return Ok(Some(served.give(self.claim(), value)));
        }
        if len < self.capacity {
            self.buffer.push_back(value);
            return Ok(None);
        }
        Err(SendError::Full(value))
    }

    /// Receives without waiting.
    // As `send`.
    #[inline(always)]
    pub(crate) fn recv(&mut self) -> Result<(T, Option<Wake>), RecvError> {
        if self.has_returned {
            let ((_, value), wake) = self.recv_returned()?;
            return Ok((value, wake));
        }
        if let Some(value) = self.buffer.pop_front() {
            shrink_after_burst(&mut self.buffer, KEPT);
            let wake = if self.senders.is_empty() {
                None
            } else {
                self.refill()
            };
            return Ok((value, wake));
        }
        if let Some((value, wake)) = self.take_from_sender() {
            return Ok((value, Some(wake)));
        }
        Err(if self.is_over {
            RecvError::Closed
        } else {
            RecvError::Empty
        })
    }

    /// Receives as [`recv`](Self::recv) does, and claims the value, which may come back. Returns
    /// its number, too.
    pub(crate) fn recv_claimed(&mut self) -> Result<((usize, T), Option<Wake>), RecvError> {
        if self.has_returned {
            self.claim();
            return self.recv_returned();
        }
        let (value, wake) = self.recv()?;
        Ok(((self.claim(), value), wake))
    }

    /// Receives a value that has come back.
    #[cold]
    fn recv_returned(&mut self) -> Result<((usize, T), Option<Wake>), RecvError> {
        let value = self.returned.pop().ok_or(RecvError::Empty)?;
        shrink_after_burst(&mut self.returned, KEPT);
        self.has_returned = !self.returned.is_empty();
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

    #[inline(always)]
    fn take_from_sender(&mut self) -> Option<(T, Wake)> {
        let (value, wake) = self.senders.serve()?.take();
        Some((value?, wake))
    }

    /// Claims a value. Returns its number, unless the value has one.
    #[inline(always)]
    fn claim(&mut self) -> usize {
        self.is_over = false;
        self.claimed = self.claimed.wrapping_add(1);
        self.claimed
    }

    /// Ends all waits of receivers, if the channel is closed and no value may come back.
    pub(crate) fn look_for_end(&mut self, settled: &Settled) -> Wakes {
        let mut wakes = Wakes::new();
        if self.is_closed && settled.are(self.claimed) {
            self.is_over = true;
            self.receivers
                .end_all(stage::CLOSED, |wake| wakes.push(wake));
        }
        wakes
    }

    /// Takes a value back whose claim has been settled.
    pub(crate) fn give_back(&mut self, number: usize, value: T) -> Option<Wake> {
        if let Some(served) = self.receivers.serve() {
            self.claim();
            return Some(served.give(number, value));
        }
        let at = self.returned.partition_point(|(its, _)| *its > number);
        self.returned.insert(at, (number, value));
        self.has_returned = true;
        None
    }

    /// Closes the channel, and ends all waits. Returns `false` if it was already closed.
    pub(crate) fn close(&mut self, settled: &Settled) -> (bool, Wakes) {
        let was_open = !mem::replace(&mut self.is_closed, true);
        settled.close();
        let mut wakes = Wakes::new();
        self.senders.end_all(stage::CLOSED, |wake| wakes.push(wake));
        wakes.extend(self.look_for_end(settled));
        (was_open, wakes)
    }

    /// Takes all values out, as all receivers are gone.
    pub(crate) fn clear(&mut self) -> (VecDeque<T>, Vec<(usize, T)>) {
        self.has_returned = false;
        (mem::take(&mut self.buffer), mem::take(&mut self.returned))
    }
}
