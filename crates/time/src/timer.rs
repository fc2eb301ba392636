//! A handle to a package that is sent later.

use crate::shard::Entry;
use crate::timers::Inner;
use ganger_sched::{Moment, Seat};
use ganger_wheel::Key;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A package that is to be sent later: from [`send_after`](crate::Timers::send_after).
///
/// Dropping it changes nothing. Any thread may call it.
#[must_use = "dropping it changes nothing; `let _ = …` says that it is not to be cancelled"]
pub struct Timer {
    timers: Arc<Inner>,
    place: Option<(Seat, Key)>,
}

impl Timer {
    pub(crate) fn new(timers: &Arc<Inner>, seat: Seat, key: Key) -> Self {
        Self {
            timers: Arc::clone(timers),
            place: Some((seat, key)),
        }
    }

    pub(crate) fn fired(timers: &Arc<Inner>) -> Self {
        Self {
            timers: Arc::clone(timers),
            place: None,
        }
    }

    /// Cancels it. Returns how long it had left: then the package is never sent, and its memory is
    /// free. `None` when it has been sent, or is being sent, or was cancelled before. O(1).
    pub fn cancel(&self) -> Option<Duration> {
        let (at, entry) = self.take()?;
        drop(entry);
        Some(at.since(self.timers.now()))
    }

    /// Has the package sent after another time, counted from now. Returns `false`, and does
    /// nothing, when [`cancel`](Self::cancel) would return `None`. Otherwise the package is not
    /// sent when it would have been. O(1).
    pub fn reset(&mut self, delay: Duration) -> bool {
        self.reset_at(self.timers.now().after(delay))
    }

    /// As [`reset`](Self::reset), to that moment.
    pub fn reset_at(&mut self, at: Moment) -> bool {
        match self.take() {
            Some((_, entry)) => {
                *self = Inner::arm(&self.timers, self.timers.now(), at, entry);
                true
            }
            None => false,
        }
    }

    /// How long it has left; `None` when [`cancel`](Self::cancel) would return `None`. O(1).
    #[must_use]
    pub fn read(&self) -> Option<Duration> {
        let (seat, key) = self.place?;
        let at = self.timers.deadline(seat, key)?;
        Some(at.since(self.timers.now()))
    }

    fn take(&self) -> Option<(Moment, Entry)> {
        let (seat, key) = self.place?;
        self.timers.take(seat, key)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("left", &self.read()).finish()
    }
}
