//! The flight recorder: the last acts of each thread, event by event.
//!
//! **Problem.** After a delay or a failure, the question is what went on just before. A log of all
//! events that is always on must cost little more than the stores of its words. A reader copies
//! megabytes of the rings while the workers continue.
//!
//! **Rejected.** A thread-local ring for each thread: threads come and go, and a thread works for
//! several schedulers. A single ring for all threads: each event would fetch its line from another
//! core.
//!
//! **Protocol.** Each worker has a [`Lane`] with a ring, written by the worker alone; all other
//! threads share a lane behind a lock. The points of the probe call the functions here, once each,
//! after a look at a field that is null where nothing is recorded.
//! 1. An event has the reading of the clock (`base/ticks.rs`) at its moment. Related events share a
//!    reading: a sent message and the wake-up of its receiver; the begin of a turn, the messages of
//!    its step, and the end of the turn before. So the end of a turn waits for the next event of
//!    its worker: the begin of the next turn, or of a search. The reading of this event is taken
//!    after the worker has found its process, whose wake-up has an earlier reading.
//! 2. In a ring no reading is below its predecessor.
//! 3. The reader reads the clock, copies the rings one after another (`ganger-ring`), converts the
//!    readings to nanoseconds, and drops all events later than its own reading.
//!
//! **Why a recording ends at one moment.** The rings copied last have events missing in the first
//! ones. An event is written before its effects have their readings. So the cause of an event up to
//! the reader's reading was written before, and is in the copy.
//!
//! **In a simulation** the clock is the virtual one, and each event has a time of its own, above
//! those of all events before, so the order is in the file.
//!
//! **Not recorded**: turns on threads other than workers, after the halt of a scheduler; and the
//! taking of a control message, or of a message kept by a timer.

mod lane;
mod names;
mod recording;

pub use recording::{Recording, mark};

use crate::base::clock::nanos;
use crate::base::recorder::Recorder;
use crate::base::ticks::{Scale, Ticks};
use crate::config::Config;
use crate::probe::{Arrival, Decide, Decider, From, Next, Wakes};
use crate::runtime::local;
use ganger_proc_api::{CommandId, Event as Shown, ExitReason, Message, Tag};
use ganger_ring::event::{After, Cause, End, Event, KEY_MASK, Pick};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, lock};
use lane::Lane;
use names::Names;
use std::sync::OnceLock;
use std::time::Duration;

/// The recorder of a scheduler.
pub(super) struct Flight {
    time: Time,
    names: Names,
    /// Lanes of the workers, and of the spares that have recorded anything.
    lanes: Box<[CachePadded<OnceLock<Lane>>]>,
    /// Of all other threads.
    outside: Mutex<Lane>,
    /// How many of the lanes belong to workers.
    workers: usize,
    bytes_each: usize,
    at_least: Duration,
}

struct Time {
    ticks: Ticks,
    /// In a simulation, the time of the last event; 0 elsewhere.
    last: AtomicU64,
}

impl Time {
    fn new(config: &Config) -> Self {
        Self {
            ticks: Ticks::of(config.clock()),
            last: AtomicU64::new(0),
        }
    }

    /// Returns, in a simulation, a time above the times of all earlier events.
    #[cold]
    fn next(&self, now: Duration) -> u64 {
        // Ordering: Relaxed here and below: a single thread stands in for all.
        let next = nanos(now).max(self.last.load(Ordering::Relaxed) + 1);
        self.last.store(next, Ordering::Relaxed);
        next
    }

    /// Returns the scale of all readings so far, and the time.
    fn scale(&self) -> (Scale, u64) {
        // Ordering: Relaxed: a single thread stands in for all.
        match self.last.load(Ordering::Relaxed) {
            0 => self.ticks.scale(),
            last => (Scale::SAME, Decider::time().map_or(last, nanos).max(last)),
        }
    }
}

impl Flight {
    pub(super) fn new(recorder: &Recorder, config: &Config, slots: usize) -> Self {
        let workers = slots.saturating_sub(config.max_spares);
        let bytes_each = recorder.bytes / (workers + 1);
        let lane = |worker| match worker < workers {
            true => CachePadded::new(OnceLock::from(Lane::new(bytes_each))),
            false => CachePadded::default(),
        };
        Self {
            time: Time::new(config),
            names: Names::default(),
            lanes: (0..slots).map(lane).collect(),
            outside: Mutex::new(Lane::new(bytes_each)),
            workers,
            bytes_each,
            at_least: recorder.at_least,
        }
    }

    /// Calls `record` with the lane of this thread, for a worker or another thread.
    #[inline(always)]
    fn with<R>(&self, worker: Option<usize>, record: impl FnOnce(&Lane) -> R) -> R {
        match worker.and_then(|worker| self.lane(worker)) {
            Some(lane) => record(lane),
            None => record(&lock(&self.outside)),
        }
    }

    #[inline(always)]
    fn lane(&self, worker: usize) -> Option<&Lane> {
        let lane = self.lanes.get(worker)?;
        Some(lane.get_or_init(|| Lane::new(self.bytes_each)))
    }

    /// Returns a reading of the clock for the next event.
    #[inline(always)]
    fn now(&self, lane: &Lane) -> u64 {
        let now = match Decider::time() {
            Some(now) => self.time.next(now),
            None => self.time.ticks.read().max(lane.last.get()),
        };
        lane.last.set(now);
        if lane.settle(now) {
            return self.still(lane);
        }
        now
    }

    /// Returns the reading of the last event, for the next event.
    #[inline(always)]
    fn still(&self, lane: &Lane) -> u64 {
        match Decider::time() {
            Some(_) => self.now(lane),
            None => lane.last.get(),
        }
    }

    /// Records an event on this thread.
    fn one(&self, worker: Option<usize>, event: impl FnOnce(&Lane) -> Event) {
        self.with(worker, |lane| lane.push(event(lane), self.now(lane)));
    }

    /// Records the begin of a step, perhaps with a turn.
    pub(super) fn step(
        &self,
        id: u64,
        worker: Option<usize>,
        of: impl Fn() -> &'static str,
        each: impl Fn(&mut dyn FnMut(&Shown)),
    ) {
        self.with(worker, |lane| {
            let mut at = None;
            if worker.is_some() && !lane.goes_on(id) {
                at = Some(self.begin_turn(lane, (id, 1), &of));
            }
            each(&mut |event| {
                if let Shown::Message(message) = event {
                    let now = match at {
                        Some(_) => self.still(lane),
                        None => self.now(lane),
                    };
                    at = Some(now);
                    let taken = Event::Taken {
                        process: id,
                        message: self.name_of(lane, message),
                        key: key(event),
                    };
                    lane.push(taken, now);
                }
            });
        });
    }

    #[inline(always)]
    fn begin_turn(
        &self,
        lane: &Lane,
        (id, steps): (u64, u64),
        of: impl Fn() -> &'static str,
    ) -> u64 {
        let at = self.now(lane);
        let begins = Event::TurnBegins {
            process: id,
            name: lane.name(of(), &self.names),
            pick: lane.take_pick(),
        };
        lane.push(begins, at);
        lane.begin_turn(id, steps);
        at
    }

    /// Records the end of a turn.
    pub(super) fn turn(
        &self,
        id: u64,
        next: Next,
        worker: Option<usize>,
        of: impl Fn() -> &'static str,
    ) {
        let Some(lane) = worker.and_then(|worker| self.lane(worker)) else {
            return;
        };
        if !lane.is_turn_of(id) {
            // Without a step.
            self.begin_turn(lane, (id, 0), of);
        }
        let after = match next {
            Next::Waits => After::Waits,
            Next::Queued | Next::GoesOn => After::Ready,
            Next::Ends => After::Ended,
        };
        lane.end_turn(id, after);
        if next == Next::GoesOn {
            lane.set_pick(Pick::Again);
        }
    }

    /// Records items put into the mailbox of a process, and the wake-up if it waits.
    pub(super) fn put<'a>(
        &self,
        id: u64,
        worker: Option<usize>,
        items: impl Iterator<Item = Arrival<'a>>,
        is_waiting: bool,
    ) {
        self.with(worker, |lane| {
            let by = lane.acts();
            let mut at = self.now(lane);
            let mut push = |event| {
                lane.push(event, at);
                at = self.still(lane);
            };
            let is_fired = local::is_firing();
            if is_fired {
                push(Event::TimerFired {
                    process: id,
                    late: lane.late.get(),
                });
            }
            let mut cause = None;
            for item in items {
                let why = match item {
                    Arrival::Event(event) => {
                        if let Some((event, why)) = self.put_event(lane, (id, by), event) {
                            push(event);
                            why
                        } else {
                            Cause::System
                        }
                    }
                    Arrival::Upgrade | Arrival::Signal => Cause::System,
                };
                cause.get_or_insert(why);
            }
            if is_waiting {
                let cause = match is_fired {
                    true => Cause::Timer,
                    false => cause.unwrap_or(Cause::System),
                };
                push(Event::Woken {
                    process: id,
                    by,
                    cause,
                });
            }
        });
    }

    #[inline(always)]
    fn put_event(
        &self,
        lane: &Lane,
        (id, by): (u64, u64),
        event: &Shown,
    ) -> Option<(Event, Cause)> {
        match event {
            Shown::Message(message) => {
                let sent = Event::Sent {
                    to: id,
                    from: by,
                    message: self.name_of(lane, message),
                    key: key(event),
                };
                Some((sent, Cause::Message))
            }
            Shown::Control(message) => {
                let sent = Event::Sent {
                    to: id,
                    from: by,
                    message: self.name_of(lane, message),
                    key: 0,
                };
                Some((sent, Cause::System))
            }
            Shown::Completion(completion) => {
                let completed = completed(id, completion.token());
                Some((completed, Cause::Completion))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn name_of(&self, lane: &Lane, message: &Message) -> u32 {
        let topic = message.topic.as_str();
        let text = match topic.is_empty() {
            true => message.payloads.type_name(),
            false => topic,
        };
        lane.name(text, &self.names)
    }

    /// Records the wake-up of a process without an item.
    pub(super) fn woken(&self, id: u64, worker: Option<usize>, wakes: Wakes) {
        self.one(worker, |lane| {
            let is_last = wakes == Wakes::LastMoment;
            Event::Woken {
                process: id,
                by: if is_last { 0 } else { lane.acts() },
                cause: match wakes {
                    Wakes::Waker if local::is_firing() => Cause::Timer,
                    Wakes::Waker => Cause::Waker,
                    Wakes::System => Cause::System,
                    Wakes::LastMoment => Cause::Event,
                },
            }
        });
    }

    pub(super) fn spawned(
        &self,
        id: u64,
        parent: u64,
        worker: Option<usize>,
        of: impl Fn() -> &'static str,
    ) {
        self.one(worker, |lane| Event::Spawned {
            process: id,
            parent,
            name: lane.name(of(), &self.names),
        });
    }

    pub(super) fn ended(&self, id: u64, worker: Option<usize>, reason: &ExitReason) {
        let end = match reason {
            ExitReason::Done(_) => End::Done,
            ExitReason::Failed(_) => End::Failed,
            ExitReason::Panicked(_) => End::Panicked,
            ExitReason::Cancelled(_) => End::Cancelled,
            ExitReason::UpgradeFailed(_) => End::UpgradeFailed,
            ExitReason::Exited(_) => End::Exited,
            _ => End::Terminated,
        };
        self.one(worker, |_| Event::Ended { process: id, end });
    }

    pub(super) fn yielded(
        &self,
        id: u64,
        worker: Option<usize>,
        command: CommandId,
        (tag, token): (Tag, u64),
    ) {
        self.one(worker, |_| Event::Yielded {
            process: id,
            command: names::of_command(command),
            tag,
            token: low(token),
        });
    }

    pub(super) fn answered(&self, id: u64, worker: Option<usize>, token: u64) {
        self.one(worker, |_| completed(id, token));
    }

    /// Records a worker when it falls asleep, or wakes up.
    pub(super) fn sleeps(&self, worker: usize, is_asleep: bool) {
        self.one(Some(worker), |lane| {
            lane.act_alone();
            match is_asleep {
                true => Event::Parked,
                false => Event::Unparked,
            }
        });
    }

    /// Notes a worker when it searches, or is none any longer.
    pub(super) fn leaves(&self, worker: usize) {
        if let Some(lane) = self.lane(worker) {
            self.act_alone(lane);
        }
    }

    fn act_alone(&self, lane: &Lane) {
        lane.act_alone();
        if lane.owes_an_end() {
            self.now(lane);
        }
    }

    pub(super) fn stole(&self, thief: usize, (victim, count): (usize, usize)) {
        self.one(Some(thief), |_| Event::Stole {
            victim: low(victim as u64),
            count: count as u64,
        });
    }

    /// Notes where the next turn of the worker comes from.
    pub(super) fn taking(&self, worker: usize, from: From) {
        if let Some(lane) = self.lane(worker) {
            lane.set_pick(match from {
                From::Global => Pick::Global,
                From::Urgent => Pick::Urgent,
                From::Arrival => Pick::Arrival,
                From::Stolen => Pick::Stolen,
            });
        }
    }

    /// Records a spare in the place of the worker.
    pub(super) fn replaced(&self, worker: Option<usize>, replaced: usize) {
        self.one(worker, |_| Event::Spare {
            worker: low(replaced as u64),
        });
    }

    /// Notes this thread before it fires timers.
    pub(super) fn firing(&self, worker: Option<usize>, late: u64) {
        self.with(worker, |lane| {
            self.act_alone(lane);
            lane.late.set(late);
        });
    }

    /// Records a mark of a user's.
    fn mark(&self, worker: Option<usize>, text: &str, value: u64) {
        let name = self.names.of(text);
        self.one(worker, |lane| Event::Mark {
            process: lane.acts(),
            name,
            value,
        });
    }

    fn alarm(&self, worker: Option<usize>, process: u64, text: &str, value: u64) {
        let name = self.names.of(text);
        self.one(worker, |_| Event::Alarm {
            process,
            name,
            value,
        });
    }
}

#[inline(always)]
fn completed(process: u64, token: u64) -> Event {
    Event::Completed {
        process,
        command: 0,
        token: low(token),
    }
}

/// Returns the low bits of a number, as records keep them.
#[expect(clippy::cast_possible_truncation, reason = "these bits are meant")]
#[inline(always)]
fn low(number: u64) -> u32 {
    number as u32 & KEY_MASK
}

/// Returns the number of a message while it is in its node: the node's address. Nodes are at least
/// 16 bytes apart.
#[inline(always)]
fn key(event: &Shown) -> u32 {
    let address = std::ptr::from_ref(event).addr() as u64;
    low(address >> 4).max(1)
}
