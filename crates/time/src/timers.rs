//! The source of a scheduler's timers, and the handle to them.

use crate::commands;
use crate::rate_limiter::Refill;
use crate::shard::{AllDue, Due, Entry, Message, Number, Shard};
use crate::timer::Timer;
use crate::within::Within;
use ganger_proc_api::{BoxError, Command, Completer, Envelope, Payload, Pid};
use ganger_sched::{
    Alarm, Builder, CommandRegistry, DeadLetter, DeadReason, Handle, Instant, Seat, Source,
};
use ganger_sync::CachePadded;
use ganger_wheel::Key;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The timers of one scheduler: give them to its builder. They are also the handle for threads
/// that are no workers.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, Envelope, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_time::Timers;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let timers = Arc::new(Timers::new());
/// let scheduler = Scheduler::builder().source(timers.clone()).start()?;
/// let waits = scheduler.spawn(process_fn(|_, events, out| {
///     if let Some(Event::Message(message)) = events.next() {
///         out.done(message.payloads.into_first());
///     }
///     Ok(())
/// }))?;
/// let envelope = Envelope::new(None, waits.pid(), "later", 42);
/// timers.send_after(Duration::from_millis(5), envelope);
/// assert_eq!(waits.wait().into_result()?.as_i64(), Some(42));
/// # Ok::<(), BoxError>(())
/// ```
///
/// # Panics
/// Calls of timers that no scheduler was built with panic, and say so. One scheduler is built with
/// them.
pub struct Timers {
    inner: Arc<Inner>,
}

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

#[derive(Default)]
pub(crate) struct Inner {
    attached: OnceLock<Attached>,
    refused: AtomicU64,
}

struct Attached {
    alarm: Alarm,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

impl Default for Timers {
    fn default() -> Self {
        Self::new()
    }
}

impl Timers {
    /// Timers for a scheduler that is to be built.
    #[must_use]
    pub fn new() -> Self {
        let inner = Arc::default();
        Self { inner }
    }

    /// The builder, with timers if it has none.
    pub fn add_to(builder: Builder) -> Builder {
        if builder.has_source::<Self>() {
            builder
        } else {
            builder.source(Arc::new(Self::new()))
        }
    }

    /// The timers that the scheduler was built with, if it was built with some.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Arc<Self>> {
        scheduler.source()
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The time, by the clock of the scheduler: the machine's monotonic one, or a simulation's.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.inner.attached().alarm.now()
    }

    /// Has the envelope sent after that time, as an ordinary message. When the process is gone by
    /// then, or its mailbox full, the envelope is dropped and counted. O(1).
    ///
    /// The envelope is kept until it is due, also when its process ends before: [`Timer::cancel`]
    /// takes it away.
    ///
    /// A delay of zero sends it at once. One that is too long for the clock is never over.
    pub fn send_after(&self, delay: Duration, envelope: Envelope) -> Timer {
        let now = self.now();
        Inner::send_at(&self.inner, now, now.after(delay), envelope)
    }

    /// Has the envelope sent at that moment: see [`send_after`](Self::send_after).
    pub fn send_at(&self, at: Instant, envelope: Envelope) -> Timer {
        Inner::send_at(&self.inner, self.now(), at, envelope)
    }

    /// What has become of all timers so far. O(workers).
    #[must_use]
    pub fn stats(&self) -> TimerStats {
        let mut stats = TimerStats::default();
        for shard in &self.inner.attached().shards {
            lock(shard).add_to(&mut stats);
        }
        // Ordering: Relaxed: a count.
        stats.refused = self.inner.refused.load(Ordering::Relaxed);
        stats
    }
}

impl Source for Timers {
    fn attach(&self, alarm: Alarm, registry: &CommandRegistry) {
        let shards = (0..alarm.seats()).map(|_| CachePadded::default()).collect();
        let attached = self.inner.attached.set(Attached { alarm, shards });
        assert!(
            attached.is_ok(),
            "these timers belong to another scheduler: make new ones for each"
        );
        commands::register(registry, &self.inner);
    }

    fn deliver(&self, seat: Seat, now: Instant, most: usize) {
        let Attached { alarm, shards } = self.inner.attached();
        let due = lock(&shards[seat.number()]).advance(alarm, seat, now, most);
        self.inner.fire_each(seat, due);
    }

    fn forget(&self, seat: Seat, key: u64) {
        let key = Key::from_bits(key);
        // Dropped without the lock.
        if let Some(entry) = key.and_then(|key| self.inner.take(seat, key)) {
            entry.forget();
        }
    }

    fn take_envelope(
        &self,
        seat: Seat,
        number: Number,
        is_wanted: &mut dyn FnMut(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let shard = &self.inner.attached().shards[seat.number()];
        let message = lock(shard).take_sent(number, is_wanted);
        message.map(|message| message.envelope)
    }

    fn release_memory(&self) {
        for shard in &self.inner.attached().shards {
            lock(shard).release_memory();
        }
    }

    fn detach(&self) {
        let Attached { alarm, shards } = self.inner.attached();
        let close = |(number, shard)| lock(shard).close(alarm, Seat::from_number(number));
        // All are closed before any is dropped: a destructor may panic.
        let left: Vec<Vec<_>> = shards
            .iter()
            .enumerate()
            .map(|it| close((it.0, &**it.1)))
            .collect();
        for_each(left.into_iter().flatten(), drop);
    }
}

impl fmt::Debug for Timers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers").finish_non_exhaustive()
    }
}

/// Calls `f` with each, also when that panics, and panics then at the end.
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

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn attached(&self) -> &Attached {
        let attached = self.attached.get();
        attached.expect("no scheduler has been built with these timers: `Builder::source`")
    }

    pub(crate) fn now(&self) -> Instant {
        self.attached().alarm.now()
    }

    fn fire_each(&self, seat: Seat, due: AllDue) {
        for due in &due {
            if let Due::Complete(completer) = due {
                completer.prefetch();
            }
        }
        for_each(due, |due| match due {
            Due::Complete(completer) => completer.complete(Payload::UNIT),
            Due::Expire(within) => within.expire(),
            Due::Refill(refill) => refill.fire(),
            Due::Send(number, target) => self.send(seat, number, target),
        });
    }

    /// Sends a message that the shard of that seat keeps until it is shown.
    fn send(&self, seat: Seat, number: Number, target: Pid) {
        let alarm = &self.attached().alarm;
        let Some(scheduler) = alarm.handle() else {
            drop(self.take_back(seat, None, number));
            return self.count_refused();
        };
        let Err(error) = alarm.send_held(&scheduler, target, seat, number) else {
            return;
        };
        let reason = DeadReason::of_late(&error.kind);
        let Envelope { target, message } = &*error.envelope;
        let letter = DeadLetter::new(reason, message.source, *target, message.topic, alarm.now());
        scheduler.tell_of_dead_letter(&letter);
        self.count_refused();
    }

    fn count_refused(&self) {
        // Ordering: Relaxed: a count.
        self.refused.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(target: "ganger::time", "an envelope was refused when it was due");
    }

    /// Has an envelope sent, by a timer at the seat of this thread.
    pub(crate) fn send_at(
        this: &Arc<Self>,
        now: Instant,
        at: Instant,
        envelope: Envelope,
    ) -> Timer {
        let Attached { alarm, shards } = this.attached();
        let seat = alarm.seat();
        let mut shard = lock(&shards[seat.number()]);
        if shard.is_closed() {
            // The envelope is dropped without the lock.
            drop(shard);
            return Timer::new(this, seat, None, 0);
        }
        if at <= now {
            let target = envelope.target;
            let number = shard.put_sent(at, envelope);
            drop(shard);
            this.send(seat, number, target);
            return Timer::new(this, seat, None, number);
        }
        let (number, key, is_earlier) = shard.put_message((alarm, seat), now, at, envelope);
        drop(shard);
        if is_earlier {
            alarm.ring(at);
        }
        Timer::new(this, seat, Some(key), number)
    }

    /// Takes a message back, unless a step has been shown it.
    pub(crate) fn take_back(
        &self,
        seat: Seat,
        key: Option<Key>,
        number: Number,
    ) -> Option<Box<Message>> {
        let Attached { alarm, shards } = self.attached();
        lock(&shards[seat.number()]).take_back(alarm, seat, key, number)
    }

    /// Completes a yield at that moment, unless its process ends or takes it back before. In a
    /// handler.
    pub(crate) fn complete_at(self: &Arc<Self>, at: Instant, completer: Completer) {
        let Attached { alarm, shards } = self.attached();
        let (seat, now) = (alarm.seat(), alarm.now());
        if at <= now {
            return completer.complete(Payload::UNIT);
        }
        let mut shard = lock(&shards[seat.number()]);
        if shard.is_closed() {
            drop(shard);
            return drop(completer);
        }
        let mut is_unwanted = false;
        let make = |key: Key| {
            if alarm.keep(&completer, seat, key.to_bits()) {
                return Entry::Complete(completer);
            }
            let weak = Arc::downgrade(self);
            // The call takes the lock, but is not made here: the process is in its turn.
            let watch = completer.on_end(move || {
                if let Some(inner) = weak.upgrade() {
                    drop(inner.take(seat, key));
                }
            });
            is_unwanted = watch.is_none();
            Entry::Watched(Box::new((completer, watch)))
        };
        let (key, is_earlier) = shard.put((alarm, seat), now, at, make);
        let ended = if is_unwanted {
            shard.take(alarm, seat, key)
        } else {
            None
        };
        drop(shard);
        drop(ended);
        if is_earlier {
            alarm.ring_in_handler(at);
        }
    }

    /// Has a command carried out, whose answer the completer takes.
    pub(crate) fn carry_out(&self, command: Command, completer: Completer) -> Result<(), BoxError> {
        self.attached().alarm.carry_out(command, completer)
    }

    /// Sets a timer for that moment, in a handler. None when it has come, or the scheduler has
    /// halted.
    pub(crate) fn expire_at(&self, at: Instant, within: Arc<Within>) -> Option<(Seat, Key)> {
        let Attached { alarm, shards } = self.attached();
        let (seat, now) = (alarm.seat(), alarm.now());
        if at <= now {
            within.expire();
            return None;
        }
        let mut shard = lock(&shards[seat.number()]);
        if shard.is_closed() {
            drop(shard);
            drop(within);
            return None;
        }
        let (key, is_earlier) = shard.put((alarm, seat), now, at, |_| Entry::Expire(within));
        drop(shard);
        if is_earlier {
            alarm.ring_in_handler(at);
        }
        Some((seat, key))
    }

    /// Sets a timer for that moment, on any thread. Gives back what is due.
    pub(crate) fn refill_at(&self, at: Instant, refill: Refill) -> Option<Refill> {
        let Attached { alarm, shards } = self.attached();
        let (seat, now) = (alarm.seat(), alarm.now());
        if at <= now {
            return Some(refill);
        }
        let mut shard = lock(&shards[seat.number()]);
        if shard.is_closed() {
            drop(shard);
            drop(refill);
            return None;
        }
        let (_, is_earlier) = shard.put((alarm, seat), now, at, |_| Entry::Refill(refill));
        drop(shard);
        if is_earlier {
            alarm.ring(at);
        }
        None
    }

    /// Takes a timer out, if there is one, and drops it.
    pub(crate) fn take_away(&self, timer: Option<(Seat, Key)>) {
        let taken = timer.and_then(|(seat, key)| self.take(seat, key));
        drop(taken);
    }

    /// Takes a timer out, if it has not fired.
    pub(crate) fn take(&self, seat: Seat, key: Key) -> Option<Entry> {
        let Attached { alarm, shards } = self.attached();
        lock(&shards[seat.number()]).take(alarm, seat, key)
    }

    /// When a timer is due, if it has not fired.
    pub(crate) fn deadline(&self, seat: Seat, key: Key) -> Option<Instant> {
        lock(&self.attached().shards[seat.number()]).deadline(key)
    }
}
