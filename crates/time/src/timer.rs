//! A handle to a package that is sent later.

use crate::timers::Inner;
use ganger_proc_api::Package;
use ganger_sched::{Moment, Recallable, Seat};
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
    /// None when it had nothing to wait for.
    place: Option<(Seat, Key)>,
    message: Arc<Recallable>,
}

impl Timer {
    pub(crate) fn new(
        timers: &Arc<Inner>,
        place: Option<(Seat, Key)>,
        message: Arc<Recallable>,
    ) -> Self {
        let timers = Arc::clone(timers);
        Self {
            timers,
            place,
            message,
        }
    }

    /// Cancels it. Returns how long it had left, which is zero when the message was sent and lay in
    /// the mailbox. No step is shown the message after that, and its memory is free.
    ///
    /// `None` when a step has been shown the message, or it was refused, or was cancelled before.
    /// So it is when it was sent to another scheduler, or to one with limits of mailboxes. O(1).
    pub fn cancel(&self) -> Option<Duration> {
        let (left, package) = self.take()?;
        drop(package);
        Some(left)
    }

    /// Has the package sent after another time, counted from now. Returns `false`, and does
    /// nothing, when [`cancel`](Self::cancel) would return `None`. Otherwise no step is shown the
    /// message before that time. O(1).
    pub fn reset(&mut self, delay: Duration) -> bool {
        self.reset_at(self.timers.now().after(delay))
    }

    /// As [`reset`](Self::reset), to that moment.
    pub fn reset_at(&mut self, at: Moment) -> bool {
        match self.take() {
            Some((_, package)) => {
                *self = Inner::send_at(&self.timers, self.timers.now(), at, package);
                true
            }
            None => false,
        }
    }

    /// How long it has left; `None` when it has been sent, or was cancelled. O(1).
    #[must_use]
    pub fn read(&self) -> Option<Duration> {
        let (seat, key) = self.place?;
        let at = self.timers.deadline(seat, key)?;
        Some(at.since(self.timers.now()))
    }

    /// How long it had left, and the package, which nothing else has from now on.
    fn take(&self) -> Option<(Duration, Package)> {
        let waiting = self
            .place
            .and_then(|(seat, key)| self.timers.take(seat, key));
        let left = waiting.map_or(Duration::ZERO, |(at, _)| at.since(self.timers.now()));
        Some((left, self.message.recall()?))
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("left", &self.read()).finish()
    }
}
