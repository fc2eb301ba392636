//! All timers of a scheduler.

use crate::entry::{Due, Entry, Message, Number, OnTime};
use crate::host::{Cause, ShardId, Ticket, TimerHost};
use crate::shard::{AllDue, Earlier, Place, Shard, TimerStats};
use ganger_proc_api::{BoxError, Command, Completer, Envelope, Instant, Payload, Pid};
use ganger_sync::CachePadded;
use ganger_wheel::Key;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The timers of a scheduler, from the scheduler's side: see [`TimerHost`].
pub struct Shards {
    host: Box<dyn TimerHost>,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    refused: AtomicU64,
}

/// Finds a timer.
#[derive(Debug, Clone, Copy)]
pub struct TimerKey {
    shard: ShardId,
    key: Key,
}

/// The reason for setting no timer, and making no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSet {
    /// The moment has come.
    Due,
    /// The scheduler has halted.
    Halted,
}

/// Finds a message with a later time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sending {
    shard: ShardId,
    /// None when the message had nothing to wait for.
    key: Option<Key>,
    number: Number,
}

impl Sending {
    /// Returns the timer, unless the message had nothing to wait for.
    pub(crate) fn timer(self) -> Option<TimerKey> {
        let shard = self.shard;
        self.key.map(|key| TimerKey { shard, key })
    }
}

/// The scheduler's calls.
impl Shards {
    /// Makes the given number of shards, without timers.
    pub fn new(host: Box<dyn TimerHost>, shards: usize) -> Self {
        Self {
            host,
            shards: (0..shards).map(|_| CachePadded::default()).collect(),
            refused: AtomicU64::new(0),
        }
    }

    /// Completes a yield at this moment, with `Payload::UNIT`. The caller runs on a thread of this
    /// shard, in a turn that is about to end. The scheduler tells by the ticket when the yield is
    /// [unwanted](Self::forget).
    ///
    /// `None`, without a call of `completer`, when the moment has come, or the scheduler has
    /// halted.
    #[inline]
    pub fn sleep(
        &self,
        shard: ShardId,
        (now, at): (Instant, Instant),
        completer: impl FnOnce() -> Completer,
    ) -> Option<Ticket> {
        if at <= now {
            return None;
        }
        let mut locked = self.lock(shard);
        if locked.is_closed() {
            return None;
        }
        let make = |_| Entry::Complete(completer());
        let (key, is_earlier) = locked.put(self.place(shard), now, at, make);
        drop(locked);
        if is_earlier {
            self.host.announce_in_turn(at);
        }
        let key = key.to_bits();
        Some(Ticket { shard, key })
    }

    /// Fires the due timers of a shard, at most `most`. Says first, by [`TimerHost::set_due`], when
    /// the shard's next timer is due. The next moment is in the past if more timers are due.
    ///
    /// Several threads may call it at a time.
    pub fn fire(&self, shard: ShardId, now: Instant, most: usize) {
        let due = self.lock(shard).advance(self.place(shard), now, most);
        self.fire_each(shard, due);
    }

    /// Forgets the sleeping yield under this ticket: its process has ended, has been upgraded, or
    /// has taken the yield back. Forgets the completer, if the shard has it.
    pub fn forget(&self, ticket: Ticket) {
        let Ticket { shard, key } = ticket;
        let timer = Key::from_bits(key).map(|key| TimerKey { shard, key });
        // Dropped without the lock.
        if let Some(entry) = timer.and_then(|timer| self.take(timer)) {
            entry.forget();
        }
    }

    /// Gives away a [sent](TimerHost::send_held) message under this ticket: a step is about to be
    /// shown it, or it is dropped with its process. Gives the message only if the shard has it and
    /// `is_wanted` allows it. `is_wanted` is short and calls no code of users.
    pub fn take_envelope(
        &self,
        ticket: Ticket,
        is_wanted: impl FnOnce(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let message = self.lock(ticket.shard).take_sent(ticket.key, is_wanted);
        message.map(|message| message.envelope)
    }

    /// Releases unused memory.
    pub fn release_memory(&self) {
        for shard in self.ids() {
            self.lock(shard).release_memory();
        }
    }

    /// Ends all shards for a halted scheduler: drops the waiting timers, and takes no more. Called
    /// by each thread that ends; the last of these calls drops all timers set before it.
    pub fn close(&self) {
        let close = |shard| self.lock(shard).close(self.place(shard));
        // All are closed before any is dropped: a destructor may panic.
        let left: Vec<Vec<_>> = self.ids().map(close).collect();
        for_each(left.into_iter().flatten(), Entry::halt);
    }

    fn ids(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shards.len()).map(ShardId::from_index)
    }

    fn fire_each(&self, shard: ShardId, due: AllDue) {
        for due in &due {
            if let Due::Complete(completer) = due {
                completer.prefetch();
            }
        }
        for_each(due, |due| match due {
            Due::Complete(completer) => completer.complete(Payload::UNIT),
            Due::Call(call) => call.fire(),
            Due::Send(number, target) => self.send(shard, number, target, None),
            Due::SendCaused(number, target, cause) => {
                self.send(shard, number, target, Some(cause));
            }
        });
    }

    /// Sends a message. The shard keeps it until it is shown.
    fn send(&self, shard: ShardId, number: Number, target: Pid, cause: Option<Cause>) {
        let ticket = Ticket { shard, key: number };
        let is_sent = match cause {
            None => self.host.send_held(target, ticket),
            Some(cause) => self.host.send_caused(target, ticket, cause),
        };
        if !is_sent {
            drop(self.take_envelope(ticket, |_| true));
            // Ordering: Relaxed: a count.
            self.refused.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(target: "ganger::time", "an envelope was refused when it was due");
        }
    }
}

/// The calls that set timers and take them away.
impl Shards {
    pub(crate) fn now(&self) -> Instant {
        self.host.now()
    }

    pub(crate) fn stats(&self) -> TimerStats {
        let mut stats = TimerStats::default();
        for shard in self.ids() {
            self.lock(shard).add_to(&mut stats);
        }
        // Ordering: Relaxed: a count.
        stats.refused = self.refused.load(Ordering::Relaxed);
        stats
    }

    /// Has an envelope sent, by a timer at the shard of this thread.
    pub(crate) fn send_at(
        &self,
        now: Instant,
        at: Instant,
        envelope: Envelope,
        cause: Option<Cause>,
    ) -> Sending {
        let shard = self.host.own_shard();
        let mut locked = self.lock(shard);
        if locked.is_closed() {
            // The envelope is dropped without the lock.
            drop(locked);
            return Sending {
                shard,
                key: None,
                number: 0,
            };
        }
        if at <= now {
            let target = envelope.target;
            let number = locked.put_sent(at, envelope);
            drop(locked);
            self.send(shard, number, target, cause);
            return Sending {
                shard,
                key: None,
                number,
            };
        }
        let (number, key, is_earlier) =
            locked.put_message(self.place(shard), (now, at), envelope, cause);
        drop(locked);
        if is_earlier {
            self.host.announce(at);
        }
        let key = Some(key);
        Sending { shard, key, number }
    }

    /// Takes a message back, unless a step has been shown it.
    pub(crate) fn take_back(&self, sending: Sending) -> Option<(Box<Message>, Option<Cause>)> {
        let Sending { shard, key, number } = sending;
        self.lock(shard).take_back(self.place(shard), key, number)
    }

    /// Completes a yield at this moment, unless its process ends or takes it back before: in a
    /// handler.
    pub(crate) fn complete_at(self: &Arc<Self>, at: Instant, completer: Completer) {
        let (shard, now) = (self.host.own_shard(), self.now());
        if at <= now {
            return completer.complete(Payload::UNIT);
        }
        let mut locked = self.lock(shard);
        if locked.is_closed() {
            drop(locked);
            return drop(completer);
        }
        let mut is_unwanted = false;
        let make = |key: Key| {
            let weak = Arc::downgrade(self);
            // The call takes the lock, but is not made here: the process is in its turn.
            let watch = completer.on_end(move || {
                if let Some(shards) = weak.upgrade() {
                    drop(shards.take(TimerKey { shard, key }));
                }
            });
            is_unwanted = watch.is_none();
            Entry::Watched(Box::new((completer, watch)))
        };
        let (key, is_earlier) = locked.put(self.place(shard), now, at, make);
        let ended = if is_unwanted {
            locked.take(self.place(shard), key)
        } else {
            None
        };
        drop(locked);
        drop(ended);
        if is_earlier {
            self.host.announce_in_turn(at);
        }
    }

    /// Has a call made at this moment: on any thread.
    pub(crate) fn call_at(&self, at: Instant, call: Arc<dyn OnTime>) -> Result<TimerKey, NotSet> {
        let (timer, is_earlier) = self.put_call(at, call)?;
        if is_earlier {
            self.host.announce(at);
        }
        Ok(timer)
    }

    /// Calls as [`call_at`](Self::call_at) does, in a handler.
    pub(crate) fn call_at_in_turn(
        &self,
        at: Instant,
        call: Arc<dyn OnTime>,
    ) -> Result<TimerKey, NotSet> {
        let (timer, is_earlier) = self.put_call(at, call)?;
        if is_earlier {
            self.host.announce_in_turn(at);
        }
        Ok(timer)
    }

    fn put_call(&self, at: Instant, call: Arc<dyn OnTime>) -> Result<(TimerKey, Earlier), NotSet> {
        let (shard, now) = (self.host.own_shard(), self.now());
        if at <= now {
            return Err(NotSet::Due);
        }
        let mut locked = self.lock(shard);
        if locked.is_closed() {
            // The call is dropped without the lock.
            drop(locked);
            return Err(NotSet::Halted);
        }
        let (key, is_earlier) = locked.put(self.place(shard), now, at, |_| Entry::Call(call));
        Ok((TimerKey { shard, key }, is_earlier))
    }

    /// Has a command carried out, whose answer the completer takes.
    pub(crate) fn carry_out(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        self.host.carry_out(command, completer)
    }

    /// Takes a timer out, if it exists, and drops it.
    pub(crate) fn take_away(&self, timer: Option<TimerKey>) {
        let taken = timer.and_then(|timer| self.take(timer));
        drop(taken);
    }

    /// Takes a timer out, if it has not fired.
    pub(crate) fn take(&self, timer: TimerKey) -> Option<Entry> {
        let TimerKey { shard, key } = timer;
        self.lock(shard).take(self.place(shard), key)
    }

    /// Returns the time at which a timer is due, if the timer has not fired.
    pub(crate) fn deadline(&self, timer: TimerKey) -> Option<Instant> {
        self.lock(timer.shard).deadline(timer.key)
    }

    fn place(&self, shard: ShardId) -> Place<'_> {
        let host = &*self.host;
        Place { host, shard }
    }

    #[inline]
    fn lock(&self, shard: ShardId) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[shard.index()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards").finish_non_exhaustive()
    }
}

/// Calls `f` with each entry, even after a panic, and then panics at the end.
fn for_each<T>(entries: impl IntoIterator<Item = T>, f: impl Fn(T)) {
    let mut panicked = None;
    for entry in entries {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| f(entry)))
            && let Some(earlier) = panicked.replace(panic)
        {
            // Its destructor might panic as well.
            mem::forget(earlier);
        }
    }
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
}
