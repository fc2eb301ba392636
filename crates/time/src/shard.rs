//! The timers of a worker, or of all other threads, behind a lock.
//!
//! **Problem.** A worker arms and cancels timers at each step, and other workers carry them out
//! when it is inside a long step.
//!
//! **Rejected.** A wheel that only its worker touches, with a queue of cancellations: the timers of
//! a worker in a long step wait, and a cancelled timer keeps its memory until the worker looks. A
//! single wheel for all: its lock would be the busiest of the scheduler.
//!
//! **Protocol.** Each call holds the lock for O(1). No code of users runs under it: a thread drops
//! or fires the timers that it took out without the lock. Under the lock the shard tells the host
//! when its earliest timer is due.
//!
//! A due message stays in the shard, and its number goes to the mailbox. Either the process that is
//! about to be shown the message or a caller takes it out under the lock, the first of the two. So
//! a caller can take a message back at any moment before it is shown.

use crate::entry::{Due, Entry, Message, Number};
use crate::host::{Cause, ShardId, TimerHost};
use ganger_proc_api::{Envelope, Instant};
use ganger_wheel::{Key, Wheel};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::time::Duration;

/// The counts of a scheduler's timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimerStats {
    /// The waiting timers.
    pub pending: usize,
    /// All timers ever set: the sum of waiting, fired and cancelled timers.
    pub armed: u64,
    /// The timers that came due.
    pub fired: u64,
    /// The timers taken away: cancelled, set anew, of processes that have ended, or left when the
    /// scheduler halted.
    pub cancelled: u64,
    /// Envelopes refused when they were due, because the process was gone or its mailbox full.
    pub refused: u64,
}

/// A shard's place in its scheduler.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: &'a dyn TimerHost,
    pub(crate) shard: ShardId,
}

pub(crate) struct Shard {
    /// Made for the first timer: most shards never have a timer.
    wheel: Option<Wheel<Entry>>,
    /// The sent messages that no step has been shown.
    sent: BTreeMap<Number, Box<Message>>,
    /// The number of the newest message.
    newest: Number,
    /// The moment that the host was told: nothing is due earlier.
    due: Instant,
    /// Until then, the time of the wheel is less than [`STALE`] behind.
    stale: Instant,
    is_closed: bool,
    armed: u64,
    fired: u64,
    cancelled: u64,
}

impl Default for Shard {
    fn default() -> Self {
        Self {
            wheel: None,
            sent: BTreeMap::new(),
            newest: 0,
            due: Instant::NEVER,
            stale: Instant::from_nanos(0),
            is_closed: false,
            armed: 0,
            fired: 0,
            cancelled: 0,
        }
    }
}

/// The due timers; mostly few.
pub(crate) type AllDue = SmallVec<[Due; 4]>;

/// An empty wheel may be this far behind the time.
const STALE: Duration = Duration::from_millis(1);

/// Whether the earliest is earlier than before.
pub(crate) type Earlier = bool;

impl Shard {
    /// Returns whether the scheduler has halted: nothing is put in any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Puts a timer in, made by `make` from its key, at the caller's own shard. The caller
    /// announces the timer if it is earlier than all before.
    #[inline]
    pub(crate) fn put(
        &mut self,
        place: Place<'_>,
        now: Instant,
        at: Instant,
        make: impl FnOnce(Key) -> Entry,
    ) -> (Key, Earlier) {
        debug_assert!(!self.is_closed && at > now);
        let wheel = self.wheel.get_or_insert_default();
        if wheel.is_empty() && now >= self.stale {
            // A wheel that knows the time need not move a new timer so often.
            wheel.advance(now.as_nanos(), 1, drop);
            self.stale = now.after(STALE);
        }
        self.armed += 1;
        let key = wheel.insert_with(at.as_nanos(), make);
        let is_earlier = at < self.due && {
            let tick = Wheel::<Entry>::TICK;
            let end = at.as_nanos().div_ceil(tick).checked_mul(tick);
            self.tell(place, end)
        };
        (key, is_earlier)
    }

    /// Puts a message in, to be sent at `at`, at the caller's own shard.
    #[inline]
    pub(crate) fn put_message(
        &mut self,
        place: Place<'_>,
        (now, at): (Instant, Instant),
        envelope: Envelope,
        cause: Option<Cause>,
    ) -> (Number, Key, Earlier) {
        let message = self.number(at, envelope);
        let number = message.number;
        let (key, is_earlier) = self.put(place, now, at, |_| match cause {
            None => Entry::Send(message),
            Some(cause) => Entry::SendCaused(Box::new((message, cause))),
        });
        (number, key, is_earlier)
    }

    /// Puts a message in, to be sent at once.
    pub(crate) fn put_sent(&mut self, at: Instant, envelope: Envelope) -> Number {
        let message = self.number(at, envelope);
        let number = message.number;
        self.sent.insert(number, message);
        number
    }

    fn number(&mut self, at: Instant, envelope: Envelope) -> Box<Message> {
        self.newest += 1;
        Box::new(Message {
            envelope,
            at,
            number: self.newest,
        })
    }

    /// Returns the time at which the entry is due.
    pub(crate) fn deadline(&self, key: Key) -> Option<Instant> {
        self.wheel.as_ref()?.deadline(key).map(Instant::from_nanos)
    }

    /// Takes a timer out, if it has not fired.
    #[inline]
    pub(crate) fn take(&mut self, place: Place<'_>, key: Key) -> Option<Entry> {
        let wheel = self.wheel.as_mut()?;
        let (at, entry) = wheel.take(key)?;
        self.cancelled += 1;
        wheel.shrink_after_burst();
        if at <= self.due.as_nanos() || wheel.is_empty() {
            let due = wheel.next_due();
            let _later = self.tell(place, due);
        }
        Some(entry)
    }

    /// Takes a message back, unless a step has been shown it.
    pub(crate) fn take_back(
        &mut self,
        place: Place<'_>,
        key: Option<Key>,
        number: Number,
    ) -> Option<(Box<Message>, Option<Cause>)> {
        match key.and_then(|key| self.take(place, key)) {
            Some(Entry::Send(message)) => Some((message, None)),
            Some(Entry::SendCaused(caused)) => Some((caused.0, Some(caused.1))),
            _ => self.sent.remove(&number).map(|message| (message, None)),
        }
    }

    /// Takes a sent message out, if it is present and wanted.
    pub(crate) fn take_sent(
        &mut self,
        number: Number,
        is_wanted: impl FnOnce(&Envelope) -> bool,
    ) -> Option<Box<Message>> {
        let message = self.sent.get(&number)?;
        if is_wanted(&message.envelope) {
            self.sent.remove(&number)
        } else {
            None
        }
    }

    /// Takes out the due timers, at most `most`. A message counts as sent from now on.
    pub(crate) fn advance(&mut self, place: Place<'_>, now: Instant, most: usize) -> AllDue {
        let mut due = AllDue::new();
        let Self { wheel, sent, .. } = self;
        let Some(wheel) = wheel else {
            return due;
        };
        let has_more = wheel.advance(now.as_nanos(), most, |entry| {
            due.push(match entry {
                Entry::Complete(completer) => Due::Complete(completer),
                Entry::Watched(watched) => Due::Complete(watched.0),
                Entry::Call(call) => Due::Call(call),
                Entry::Send(message) => {
                    let (number, target) = (message.number, message.envelope.target);
                    sent.insert(number, message);
                    Due::Send(number, target)
                }
                Entry::SendCaused(caused) => {
                    let (message, cause) = *caused;
                    let (number, target) = (message.number, message.envelope.target);
                    sent.insert(number, message);
                    Due::SendCaused(number, target, cause)
                }
            });
        });
        wheel.shrink_after_burst();
        self.fired += due.len() as u64;
        let next = wheel.next_due();
        let _later = self.tell(place, next);
        if has_more && self.due > now {
            // The wheel is behind: its next work moves timers that are due later.
            self.due = now;
            let _earlier = place.host.set_due(place.shard, now);
        }
        due
    }

    /// Tells the host when the earliest timer is due. Returns whether it is earlier than before.
    fn tell(&mut self, place: Place<'_>, due: Option<u64>) -> Earlier {
        self.due = due.map_or(Instant::NEVER, Instant::from_nanos);
        place.host.set_due(place.shard, self.due)
    }

    /// Takes all waiting timers out, and takes nothing in from now on. A sent message goes with its
    /// mailbox.
    pub(crate) fn close(&mut self, place: Place<'_>) -> Vec<Entry> {
        self.is_closed = true;
        let entries: Vec<_> = self.wheel.iter_mut().flat_map(Wheel::drain).collect();
        self.cancelled += entries.len() as u64;
        let _later = self.tell(place, None);
        entries
    }

    /// Releases unused memory.
    pub(crate) fn release_memory(&mut self) {
        if let Some(wheel) = &mut self.wheel {
            wheel.shrink();
        }
    }

    /// Adds the shard's counts to the counts of other shards.
    pub(crate) fn add_to(&self, stats: &mut TimerStats) {
        stats.pending += self.wheel.as_ref().map_or(0, Wheel::len);
        stats.armed += self.armed;
        stats.fired += self.fired;
        stats.cancelled += self.cancelled;
    }
}
