//! The timers of a scheduler, for its users.

use crate::entry::OnTime;
use crate::host::Cause;
use crate::shard::TimerStats;
use crate::shards::{NotSet, Shards, TimerKey};
use crate::timer::Timer;
use ganger_proc_api::{Envelope, Instant};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The timers of a scheduler: for threads outside of its workers. Clones are of the same timers.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, Envelope, process_fn};
/// use ganger_sched::Scheduler;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::start_default()?;
/// let waits = scheduler.spawn(process_fn(|_, events, out| {
///     if let Some(Event::Message(message)) = events.next() {
///         out.done(message.payloads.into_first());
///     }
///     Ok(())
/// }))?;
/// let envelope = Envelope::new(None, waits.pid(), "later", 42);
/// let _timer = scheduler.timers().send_after(Duration::from_millis(5), envelope);
/// assert_eq!(waits.wait().into_result()?.as_i64(), Some(42));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct Timers {
    shards: Arc<Shards>,
}

impl Timers {
    /// Makes the timers of these shards: for the scheduler.
    #[doc(hidden)]
    #[must_use]
    pub fn new(shards: Shards) -> Self {
        let shards = Arc::new(shards);
        Self { shards }
    }

    /// Returns the scheduler's side.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn shards(&self) -> &Arc<Shards> {
        &self.shards
    }

    /// Returns the time, by the clock of the scheduler: the machine's monotonic clock, or a
    /// simulation's.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shards.now()
    }

    /// Has the envelope sent after `delay`, as an ordinary message. When the process is then gone,
    /// or its mailbox full, the envelope is dropped and counted. O(1).
    ///
    /// The envelope is kept until it is due, also when its process ends before: [`Timer::cancel`]
    /// takes it away.
    ///
    /// A delay of zero sends the envelope at once. A delay too long for the clock is never over.
    pub fn send_after(&self, delay: Duration, envelope: Envelope) -> Timer {
        let now = self.now();
        let sending = self.shards.send_at(now, now.after(delay), envelope, None);
        Timer::new(&self.shards, sending)
    }

    /// Sends an envelope later, as [`send_after`](Self::send_after) does, with a cause: for the
    /// scheduler.
    #[doc(hidden)]
    pub fn send_caused_after(&self, delay: Duration, envelope: Envelope, cause: Cause) -> Timer {
        let now = self.now();
        let at = now.after(delay);
        let sending = self.shards.send_at(now, at, envelope, Some(cause));
        Timer::new(&self.shards, sending)
    }

    /// Has the envelope sent at this moment: see [`send_after`](Self::send_after).
    pub fn send_at(&self, at: Instant, envelope: Envelope) -> Timer {
        let sending = self.shards.send_at(self.now(), at, envelope, None);
        Timer::new(&self.shards, sending)
    }

    /// Has a call made at this moment, by a thread of the scheduler: for crates that add to the
    /// scheduler.
    ///
    /// # Errors
    /// [`NotSet`] when the moment has come, or the scheduler has halted. Nothing is called then.
    #[doc(hidden)]
    pub fn call_at(&self, at: Instant, call: Arc<dyn OnTime>) -> Result<TimerKey, NotSet> {
        self.shards.call_at(at, call)
    }

    /// Cancels a call, if it has not been made.
    #[doc(hidden)]
    pub fn cancel_call(&self, call: TimerKey) {
        self.shards.take_away(Some(call));
    }

    /// Returns the counts of all timers so far. O(workers).
    #[must_use]
    pub fn stats(&self) -> TimerStats {
        self.shards.stats()
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").finish_non_exhaustive()
    }
}
