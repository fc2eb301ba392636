//! What makes processes ready from outside, at moments that it names: timers, for example.
//!
//! **Problem.** Timers, pollers and devices are crates above the scheduler. The scheduler's threads
//! are to wait for them, and to carry them out, without knowing them.
//!
//! **Protocol of a source.** It keeps what is to come at *seats*: one for each worker, and one for
//! all other threads, each behind a lock of its own.
//! 1. A thread adds something at its own seat ([`Alarm::seat`]). Under the seat's lock it says when
//!    the seat's earliest is due ([`Alarm::set`]). When that is earlier than before, it
//!    [rings](Alarm::ring) without the lock.
//! 2. Any thread may take something away at any seat. Under the lock it says when the seat's
//!    earliest is due from then on.
//! 3. A thread of the scheduler calls [`deliver`](Source::deliver) when a seat has something due.
//!    This takes out what is due, says under the lock when the next is, and wakes processes without
//!    the lock.
//!
//! A worker calls for its own seat between two turns, and for all seats when it finds no process,
//! or has slept until then (`queues/timer_waiter.rs`). At a rotation it calls for what is late at
//! other seats, and the monitor calls for what is later still. So a worker that does not come out
//! of a step delays nothing for long.

use crate::base::clock::{Clock, Instant, MonotonicClock, nanos};
use crate::base::contain::contain_and_report;
use crate::handlers::commands::CommandRegistry;
use crate::policy::{TIMER_BATCH, TIMER_NEAR};
use crate::probe::{Decide, Decider};
use crate::queues::timer_waiter::Dues;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use ganger_proc_api::{Completer, Envelope, Pid, Ticket};
use ganger_sync::atomic::{Ordering, fence};
use std::any::Any;
use std::fmt;
use std::num::NonZeroU16;
use std::ptr;
use std::sync::{Arc, Weak};

/// What makes processes ready from outside: timers, for example. See
/// [`Builder::source`](crate::Builder::source).
///
/// It wakes processes by completers, wakers and messages. A panic in it is contained.
pub trait Source: Any + Send + Sync {
    /// The scheduler is built. Called once, before all else; the source registers handlers of its
    /// commands here.
    fn attach(&self, alarm: Alarm, commands: &CommandRegistry);

    /// Wakes what is due at that seat, up to so many of it. Says first, by [`Alarm::set`], when the
    /// seat's next is due; that is in the past where there is more.
    ///
    /// Several threads may call it at a time. It wakes nothing while it holds a lock.
    fn deliver(&self, seat: Seat, now: Instant, most: usize);

    /// The yield whose completer it [keeps](Alarm::keep) there is not wanted any longer: its
    /// process has ended, has been upgraded, or has taken it back. Forgets the completer, if it is
    /// there.
    fn forget(&self, seat: Seat, key: u64) {
        let _ = (seat, key);
    }

    /// A message that the source [has sent](Alarm::send_held) and keeps is about to be shown to a
    /// step, or dropped with its process. Gives it away if it is there, and `is_wanted` says so,
    /// which is short and calls nothing of users.
    fn take_envelope(
        &self,
        seat: Seat,
        key: u64,
        is_wanted: &mut dyn FnMut(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let _ = (seat, key, is_wanted);
        None
    }

    /// Gives memory back that nothing needs that is there now: see
    /// [`Handle::release_memory`](crate::Handle::release_memory).
    fn release_memory(&self) {}

    /// The scheduler has halted: drops what is to come, and takes no more. Called by each thread
    /// that ends; what is there before the last of these calls goes with it.
    fn detach(&self);
}

/// A place at which a source keeps what is to come: one for each worker, and one for all other
/// threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seat(usize);

impl Seat {
    /// The seat of the threads that are no workers.
    pub const OUTSIDE: Self = Self(0);

    pub(crate) const fn of_worker(index: usize) -> Self {
        Self(index + 1)
    }

    /// Its number, which is below [`Alarm::seats`].
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }

    /// The seat with that number.
    #[must_use]
    pub const fn from_number(number: usize) -> Self {
        Self(number)
    }
}

/// A source's way to say when it wants to be called: see [`Source::attach`].
#[derive(Clone)]
pub struct Alarm {
    shared: Weak<Shared>,
    dues: Arc<Dues>,
    clock: MonotonicClock,
    source: usize,
}

impl Alarm {
    /// The time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Instant {
        let now = Decider::time().unwrap_or_else(|| self.clock.now());
        Instant::from_nanos(nanos(now))
    }

    /// How many seats there are.
    #[must_use]
    pub fn seats(&self) -> usize {
        self.dues.seats()
    }

    /// The seat of the calling thread.
    #[must_use]
    #[inline]
    pub fn seat(&self) -> Seat {
        self.with_queue(|queue| queue.map_or(Seat::OUTSIDE, |it| Seat::of_worker(it.index)))
    }

    /// Says when the earliest of that seat is due. The caller holds the lock of the seat. Returns
    /// whether that is earlier than before.
    ///
    /// A thread makes it earlier at its own seat alone, and then [rings](Self::ring).
    #[must_use = "what is earlier has to be rung for"]
    #[inline]
    pub fn set(&self, seat: Seat, at: Instant) -> bool {
        self.dues.set(self.source, seat.0, at.as_nanos())
    }

    /// In the handler of a command: has the source [forget](Source::forget) the command's completer
    /// when it is not wanted any longer. `false` where that can't be, and the completer has to be
    /// watched: [`Completer::on_end`].
    #[must_use = "on false the caller must watch the completer"]
    pub fn keep(&self, completer: &Completer, seat: Seat, key: u64) -> bool {
        let ticket = self.ticket(seat, key);
        ticket.is_some_and(|ticket| completer.keep(ticket))
    }

    /// What names something that the source keeps; none where the numbers are too high.
    #[inline]
    pub(crate) fn ticket(&self, seat: Seat, key: u64) -> Option<Ticket> {
        Some(Ticket {
            source: NonZeroU16::new(u16::try_from(self.source + 1).ok()?)?,
            seat: u16::try_from(seat.0).ok()?,
            key,
        })
    }

    /// Something is due at the caller's own seat that is earlier than what was there before. Call
    /// it without the lock.
    #[inline]
    pub fn ring(&self, at: Instant) {
        self.with_queue(|queue| match queue {
            Some(queue) => ring_here(queue, at.as_nanos(), Ring::Now),
            None => self.ring_from_outside(at.as_nanos()),
        });
    }

    /// As [`ring`](Self::ring), in a handler that returns at once: what is owed is done before the
    /// next turn. So no thread is woken for a worker that is about to sleep until then.
    #[inline]
    pub fn ring_in_handler(&self, at: Instant) {
        self.with_queue(|queue| match queue {
            Some(queue) => ring_here(queue, at.as_nanos(), Ring::BeforeNextTurn),
            None => self.ring_from_outside(at.as_nanos()),
        });
    }

    #[cold]
    #[inline(never)]
    fn ring_from_outside(&self, at: u64) {
        if let Some(shared) = self.shared.upgrade() {
            // Ordering: SeqCst, pairs with the heavy fences in `idle.rs` and with the fence of
            // `Idle::end_search`: either the thread there sees the moment, or it is seen below to
            // sleep, or to search no more, and the timer waiter's moment to be another.
            fence(Ordering::SeqCst);
            if shared.timing.timer_waiter.is_uncovered(at) {
                shared.queues.idle.notify_from_outside();
            }
        }
    }

    /// The scheduler, unless it is gone. The caller must hold no lock of its own when it drops it.
    #[must_use]
    pub(crate) fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.upgrade()
    }

    #[inline]
    fn with_queue<R>(&self, f: impl FnOnce(Option<&LocalQueue>) -> R) -> R {
        let is_own =
            |queue: &&LocalQueue| ptr::eq(Arc::as_ptr(&queue.shared), self.shared.as_ptr());
        local::with_any(|queue| f(queue.filter(is_own)))
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm")
            .field("now", &self.now())
            .field("seat", &self.seat())
            .finish_non_exhaustive()
    }
}

/// When a worker does what it owes.
#[derive(PartialEq, Eq)]
enum Ring {
    Now,
    BeforeNextTurn,
}

/// A worker has something due at its own seat.
#[inline]
fn ring_here(queue: &LocalQueue, at: u64, ring: Ring) {
    let shared = &queue.shared;
    let slot = shared.worker_slots.slot(queue.index);
    slot.alert_from(at.saturating_sub(TIMER_NEAR));
    if shared.queues.idle.is_unwatched_behind_write() && shared.timing.timer_waiter.is_uncovered(at)
    {
        match ring {
            Ring::Now => shared.queues.idle.wake_monitor(),
            // See `Worker::serve`.
            Ring::BeforeNextTurn => slot.alert_from(0),
        }
    }
}

impl Shared {
    /// Tells the sources, and the driver, of this scheduler.
    pub(crate) fn attach_sources(self: &Arc<Self>) {
        for (source, it) in self.timing.sources.iter().enumerate() {
            let alarm = Alarm {
                shared: Arc::downgrade(self),
                dues: Arc::clone(&self.timing.timer_waiter.dues),
                clock: self.timing.time.clock(),
                source,
            };
            it.attach(alarm, &self.commands);
        }
        if let Some(driven) = &self.timing.driven {
            driven.attach(&self.commands);
        }
    }

    /// Tells the sources that this scheduler has halted.
    pub(crate) fn detach_sources(&self) {
        for source in &self.timing.sources {
            self.contain_source(|| source.detach());
        }
    }

    /// Has the sources give memory back.
    pub(crate) fn release_sources(&self) {
        for source in &self.timing.sources {
            self.contain_source(|| source.release_memory());
        }
    }

    /// The source of that type, if there is one.
    pub(crate) fn source<S: Source>(&self) -> Option<Arc<S>> {
        let sources = self.timing.sources.iter();
        sources
            .filter_map(|it| {
                let it: Arc<dyn Any + Send + Sync> = Arc::clone(it) as _;
                it.downcast().ok()
            })
            .next()
    }

    /// As [`source`](Self::source), borrowed.
    #[inline]
    pub(crate) fn source_ref<S: Source>(&self) -> Option<&S> {
        let mut sources = self.timing.sources.iter();
        sources.find_map(|it| (&**it as &dyn Any).downcast_ref())
    }

    /// The envelope that a source keeps, if it is there and `is_wanted` says so.
    pub(crate) fn take_held(
        &self,
        ticket: Ticket,
        mut is_wanted: impl FnMut(&Envelope) -> bool,
    ) -> Option<Envelope> {
        let source = (self.timing.sources).get(usize::from(ticket.source.get()) - 1)?;
        let mut envelope = None;
        self.contain_source(|| {
            envelope = source.take_envelope(Seat(ticket.seat.into()), ticket.key, &mut is_wanted);
        });
        envelope
    }

    /// The time, by the clock, in nanoseconds.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        nanos(Decider::time().unwrap_or_else(|| self.timing.time.read()))
    }

    /// Whether something is due some time at a source.
    pub(crate) fn waits_for_time(&self) -> bool {
        self.timing.timer_waiter.dues.earliest(self.seats()) < u64::MAX
    }

    /// How many seats may have something.
    pub(crate) fn seats(&self) -> usize {
        self.worker_slots.used() + 1
    }

    /// Whether something is queued, or is due with no thread to wait for it.
    pub(crate) fn owes_a_look(&self) -> bool {
        self.has_work()
            || self.timing.timer_waiter.is_used()
                && self.timing.timer_waiter.uncovered(self.seats()).is_some()
    }

    /// Has what is due at that seat delivered, up to [`TIMER_BATCH`] of each source. Returns
    /// whether something was due.
    pub(crate) fn deliver_at(&self, seat: Seat, now: u64) -> bool {
        let mut was_due = false;
        for (source, it) in self.timing.sources.iter().enumerate() {
            if self.timing.timer_waiter.dues.get(source, seat.0) <= now {
                was_due = true;
                local::delivering(|| {
                    self.contain_source(|| it.deliver(seat, Instant::from_nanos(now), TIMER_BATCH));
                });
            }
        }
        was_due
    }

    /// Has what was due by then delivered, at all seats. Returns whether something was.
    pub(crate) fn deliver_all(&self, by: u64) -> bool {
        let seats = self.seats();
        if self.timing.timer_waiter.dues.earliest(seats) > by {
            return false;
        }
        let mut was_due = false;
        for seat in 0..seats {
            was_due |=
                self.timing.timer_waiter.dues.at(seat) <= by && self.deliver_at(Seat(seat), by);
        }
        was_due
    }

    /// What sources keep for yields that are not wanted any longer.
    pub(crate) fn forget_at_sources(&self, tickets: &[Ticket]) {
        for ticket in tickets {
            let source = self
                .timing
                .sources
                .get(usize::from(ticket.source.get()) - 1);
            if let Some(source) = source {
                let seat = Seat(ticket.seat.into());
                self.contain_source(|| source.forget(seat, ticket.key));
            }
        }
    }

    fn contain_source(&self, f: impl FnOnce()) {
        let pid = Pid::new(self.host, 0);
        contain_and_report("a source", pid, self.own_counters(), f);
    }
}
