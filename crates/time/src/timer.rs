//! A handle to an envelope that is sent later.

use crate::shard::{Message, Number};
use crate::timers::Inner;
use ganger_sched::{Instant, Seat};
use ganger_wheel::Key;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An envelope that is to be sent later: from [`send_after`](crate::Timers::send_after).
///
/// Dropping it changes nothing. Any thread may call it.
#[must_use = "dropping it changes nothing; `let _ = …` says that it is not to be cancelled"]
pub struct Timer {
    timers: Arc<Inner>,
    seat: Seat,
    /// None when it had nothing to wait for.
    key: Option<Key>,
    number: Number,
}

impl Timer {
    pub(crate) fn new(timers: &Arc<Inner>, seat: Seat, key: Option<Key>, number: Number) -> Self {
        let timers = Arc::clone(timers);
        Self {
            timers,
            seat,
            key,
            number,
        }
    }

    /// Another handle to the same envelope.
    pub(crate) fn twin(&self) -> Self {
        Self::new(&self.timers, self.seat, self.key, self.number)
    }

    /// Cancels it. Returns when it was due: that has passed when the message lay in the mailbox. No
    /// step is shown the message after that, and its memory is free.
    ///
    /// `None` when a step has been shown the message, or it was refused, or was cancelled before.
    /// So it is when it was sent to another scheduler. O(1).
    pub fn cancel(&self) -> Option<Instant> {
        let message = self.take()?;
        Some(message.at)
    }

    /// Has the envelope sent after another time, counted from now. Returns `false`, and does
    /// nothing, when [`cancel`](Self::cancel) would return `None`. Otherwise no step is shown the
    /// message before that time. O(1).
    pub fn reset(&mut self, delay: Duration) -> bool {
        self.reset_at(self.timers.now().after(delay))
    }

    /// As [`reset`](Self::reset), to that moment.
    pub fn reset_at(&mut self, at: Instant) -> bool {
        match self.take() {
            Some(message) => {
                *self = Inner::send_at(&self.timers, self.timers.now(), at, message.envelope);
                true
            }
            None => false,
        }
    }

    /// How long it has left; `None` when it has been sent, or was cancelled. O(1).
    #[must_use]
    pub fn read(&self) -> Option<Duration> {
        let at = self.timers.deadline(self.seat, self.key?)?;
        Some(at.since(self.timers.now()))
    }

    /// The message, which nothing else has from now on.
    fn take(&self) -> Option<Box<Message>> {
        self.timers.take_back(self.seat, self.key, self.number)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("left", &self.read()).finish()
    }
}
