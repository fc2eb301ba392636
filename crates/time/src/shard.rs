//! The timers of one worker, or of all other threads, behind a lock.
//!
//! **Problem.** A worker arms and cancels timers at each step, and other workers carry them out
//! when it is inside a long step.
//!
//! **Rejected.** A wheel that its worker alone touches, with a queue of cancellations: the timers
//! of a worker in a long step wait, and what is cancelled keeps its memory until the worker looks.
//! One wheel for all: its lock would be the busiest of the scheduler.
//!
//! **Protocol.** Each call holds the lock for O(1). Nothing of users runs under it: what is taken
//! out is dropped or fired without it. Under it the shard tells the host when its earliest is due.
//!
//! A message that is due stays in the shard, and its number goes to the mailbox. Whichever is first
//! takes it out under the lock: the process that is about to be shown it, or a caller that takes it
//! back. So there is no moment at which it can't be taken back before it is shown.

use crate::entry::{Due, Entry, Message, Number};
use crate::host::{Cause, ShardId, TimerHost};
use ganger_proc_api::{Envelope, Instant};
use ganger_wheel::{Key, Wheel};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::time::Duration;

/// What has become of the timers of a scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimerStats {
    /// Those that wait.
    pub pending: usize,
    /// Those that have ever been set: as many as wait, have fired and have been cancelled.
    pub armed: u64,
    /// Those that were due.
    pub fired: u64,
    /// Those that were taken away: cancelled, set anew, of processes that have ended, and those
    /// that were there when the scheduler halted.
    pub cancelled: u64,
    /// Envelopes that were refused when they were due, because the process was gone or its mailbox
    /// full.
    pub refused: u64,
}

/// A shard's place in its scheduler.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) host: &'a dyn TimerHost,
    pub(crate) shard: ShardId,
}

pub(crate) struct Shard {
    /// From the first timer on: most shards never have one.
    wheel: Option<Wheel<Entry>>,
    /// The messages that were sent, and that no step has been shown.
    sent: BTreeMap<Number, Box<Message>>,
    /// The number of the newest message.
    newest: Number,
    /// What the host has been told: nothing is due earlier.
    due: Instant,
    /// The wheel knows the time, but for less than [`STALE`], until then.
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

/// What is due; mostly it is little.
pub(crate) type AllDue = SmallVec<[Due; 4]>;

/// For so long an empty wheel is not told the time.
const STALE: Duration = Duration::from_millis(1);

/// Whether the earliest is earlier than before.
pub(crate) type Earlier = bool;

impl Shard {
    /// Whether the scheduler has halted: nothing is put in any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Puts a timer in that `make` makes of its key, at the caller's own shard. The caller
    /// announces it if it is earlier than what was there.
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
            // What is put into a wheel that knows the time need not move so often.
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

    /// Puts a message in that is to be sent then, at the caller's own shard.
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

    /// Puts a message in that is sent now.
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

    /// When it is due.
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

    /// Takes a message out that was sent, if it is there, and wanted.
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

    /// Takes out what is due, up to so many. A message is sent from now on.
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
            // It is about to move timers that are due later: they are not due, but the wheel is
            // behind.
            self.due = now;
            let _earlier = place.host.set_due(place.shard, now);
        }
        due
    }

    /// Tells the host when the earliest is due. Returns whether that is earlier than before.
    fn tell(&mut self, place: Place<'_>, due: Option<u64>) -> Earlier {
        self.due = due.map_or(Instant::NEVER, Instant::from_nanos);
        place.host.set_due(place.shard, self.due)
    }

    /// Takes everything out that waits, and takes nothing in any more. What was sent goes with the
    /// mailbox that it is in.
    pub(crate) fn close(&mut self, place: Place<'_>) -> Vec<Entry> {
        self.is_closed = true;
        let entries: Vec<_> = self.wheel.iter_mut().flat_map(Wheel::drain).collect();
        self.cancelled += entries.len() as u64;
        let _later = self.tell(place, None);
        entries
    }

    /// Gives memory back that no timer needs.
    pub(crate) fn release_memory(&mut self) {
        if let Some(wheel) = &mut self.wheel {
            wheel.shrink();
        }
    }

    /// Adds the shard's counts to those of other shards.
    pub(crate) fn add_to(&self, stats: &mut TimerStats) {
        stats.pending += self.wheel.as_ref().map_or(0, Wheel::len);
        stats.armed += self.armed;
        stats.fired += self.fired;
        stats.cancelled += self.cancelled;
    }
}
