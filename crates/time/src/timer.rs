//! A handle to an envelope with a later time.

use crate::entry::Message;
use crate::host::Cause;
use crate::shards::{Sending, Shards};
use ganger_proc_api::Instant;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An envelope to be sent later: from [`send_after`](crate::Timers::send_after).
///
/// Dropping it changes nothing. Any thread may call it. Clones are of the same envelope, until a
/// clone is [`reset`](Self::reset).
#[must_use = "dropping it changes nothing; `let _ = …` says that it is not to be cancelled"]
#[derive(Clone)]
pub struct Timer {
    shards: Arc<Shards>,
    sending: Sending,
}

impl Timer {
    pub(crate) fn new(shards: &Arc<Shards>, sending: Sending) -> Self {
        let shards = Arc::clone(shards);
        Self { shards, sending }
    }

    /// Cancels the envelope. Returns the moment when it was due; for a message in the mailbox, this
    /// moment has passed. No step is shown the message afterwards, and its memory is free.
    ///
    /// `None` when a step has been shown the message, or the message was refused, cancelled before,
    /// or sent to another scheduler. O(1).
    pub fn cancel(&self) -> Option<Instant> {
        let (message, _cause) = self.take()?;
        Some(message.at)
    }

    /// Has the envelope sent after another delay, counted from now. Returns `false`, and does
    /// nothing, when [`cancel`](Self::cancel) would return `None`. Otherwise no step is shown the
    /// message before the delay is over. O(1).
    pub fn reset(&mut self, delay: Duration) -> bool {
        self.reset_at(self.shards.now().after(delay))
    }

    /// Resets the timer as [`reset`](Self::reset) does, to this moment.
    pub fn reset_at(&mut self, at: Instant) -> bool {
        match self.take() {
            Some((message, cause)) => {
                let now = self.shards.now();
                self.sending = self.shards.send_at(now, at, message.envelope, cause);
                true
            }
            None => false,
        }
    }

    /// Returns the time left; `None` when the message has been sent, or was cancelled. O(1).
    #[must_use]
    pub fn read(&self) -> Option<Duration> {
        let at = self.shards.deadline(self.sending.timer()?)?;
        Some(at.since(self.shards.now()))
    }

    /// Takes the message out; nothing else has it from now on.
    fn take(&self) -> Option<(Box<Message>, Option<Cause>)> {
        self.shards.take_back(self.sending)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("left", &self.read()).finish()
    }
}
