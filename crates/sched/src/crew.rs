//! Who is on duty: as many workers as were asked for, whatever their steps do.
//!
//! **Problem.** A step that blocks its thread, or computes for long, takes a worker away from all other
//! processes. The thread can't be taken back before the step returns.
//!
//! **Rejected.** Handing the worker's deque to another thread: its owner would have to find out, at each
//! push from inside the step, that it is the owner no longer. More workers from the start: they would
//! compete for the processors whenever no step blocks.
//!
//! **Protocol.** Every thread has a slot, with a deque of its own; slots of spare threads are filled when
//! they are first needed.
//! 1. The monitor, or a step that says that it is about to block, has a worker *relieved*: a spare
//!    thread goes on duty, and takes what waits wherever it is, by stealing.
//! 2. A worker that comes out of a step and finds itself relieved *stands down*: what is in its deque
//!    goes to the global queue, and it is a spare itself. When it was relieved too late for that, while it looks
//!    for work, it does so before it looks again; and it is woken for that if it sleeps.
//! 3. A spare that is not needed for a while ends; its slot is free again.
//!
//! So as many threads as were asked for are on duty, and one more for as long as a relieved worker
//! takes to come out of its step when it was about to.
//!
//! A step that had its worker relieved by saying that it is about to block may compute for long after that.
//! No spare goes on duty then which would report it: whichever worker is the first to end a turn, or is
//! about to sleep, does (`have_told`).
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `calls` | under the lock, when a spare goes on duty; the monitor, when there is something to tell; the worker, when it stands down or tells | the worker, after each turn, and before it sleeps |
//! | `on_duty` | under the lock | the spare that waits; workers that compare themselves with others; under the lock, who relieves it |
//! | `announcements` | the worker | the monitor |
//! | `overdue` | the monitor | the worker, in a step |
//! | `is_looking` | the worker, when it finds nothing, and when it finds something again | the monitor |
//! | `thread` | the worker, under the lock when it ends | the monitor; under the lock, who relieves it |
//! | `place` | under the lock, before the thread starts or goes on duty | the worker; under the lock |
//! | `report` | whoever relieves a worker | the spare that takes its place, once |

mod calls;
mod spares;
mod thread_account;
mod threads;

pub(crate) use crate::crew::calls::Calls;
pub(crate) use crate::crew::spares::Next;
pub(crate) use crate::crew::threads::start_worker;

use crate::contain::log;
use crate::crew::calls::Announcements;
use crate::crew::spares::{NoSpare, Spares};
use crate::crew::thread_account::{computed, is_asleep, thread_id};
use crate::pinning::Pins;
use crate::reports::{Line, LongStep};
use ganger_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, Parker};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

pub(crate) struct Crew {
    workers: usize,
    slots: Box<[CachePadded<Slot>]>,
    /// Slots from here on have never had a thread.
    used: AtomicUsize,
    spares: Mutex<Spares>,
    /// What nobody has reported yet.
    untold: Mutex<VecDeque<Untold>>,
    pins: Option<Pins>,
    /// A thread says that nobody was left: one at a time, because its subscriber may wait.
    is_warning: Arc<AtomicBool>,
    /// The system grants no thread from now on.
    #[cfg(test)]
    refuses_threads: AtomicBool,
}

#[derive(Default)]
struct Slot {
    calls: Calls,
    /// It stands for one of the workers that were asked for, or did until somebody took its place.
    on_duty: AtomicBool,
    announcements: Announcements,
    /// The number of the turn whose time is over, if it is still that one.
    overdue: AtomicU64,
    /// The thread's id, for the system; 0 where there is none.
    thread: AtomicU32,
    /// The worker looks for work, or sleeps: it is in no turn.
    is_looking: AtomicBool,
    /// Which of the workers that were asked for it stands for, while it is on duty.
    place: AtomicUsize,
    /// What the thread is to report when it goes on duty.
    report: Mutex<Option<Relief>>,
    parker: Parker,
}

impl Slot {
    /// Its thread is in no turn until it has found work, however long it takes to start.
    fn new(place: usize, on_duty: bool) -> Self {
        Self {
            on_duty: AtomicBool::new(on_duty),
            is_looking: AtomicBool::new(true),
            place: AtomicUsize::new(place),
            ..Self::default()
        }
    }
}

/// Why a worker was relieved.
#[derive(Clone, Debug)]
pub(crate) struct Relief {
    pub(crate) step: LongStep,
    /// The number of its worker's turn.
    pub(crate) turn: u64,
    /// Whether the spare is to report it.
    pub(crate) line: Line,
}

/// What the first worker is to say that is free.
pub(crate) enum Untold {
    /// The step of a relieved worker.
    Step(Relief),
    /// Nobody was left to take a worker's place.
    NoSpare(NoSpare),
}

impl Crew {
    pub(crate) fn new(workers: usize, slots: usize, pins: Option<Pins>) -> Self {
        Self {
            workers,
            slots: (0..slots)
                .map(|slot| CachePadded::new(Slot::new(slot, slot < workers)))
                .collect(),
            used: AtomicUsize::new(workers),
            spares: Mutex::new(Spares::default()),
            untold: Mutex::default(),
            pins,
            is_warning: Arc::new(AtomicBool::new(false)),
            #[cfg(test)]
            refuses_threads: AtomicBool::new(false),
        }
    }

    /// How many workers are on duty.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// How many slots have ever had a thread, at the beginning of all.
    pub(crate) fn used(&self) -> usize {
        // Ordering: Relaxed: slots and deques are there from the beginning. Who has to see what a thread has put in
        // its deque, or that it has looked, is behind a fence or a lock that is behind that, and so behind its start.
        self.used.load(Ordering::Relaxed)
    }

    /// How many workers have been relieved and not stood down yet.
    pub(crate) fn relieved(&self) -> usize {
        (0..self.used())
            .filter(|&index| self.is_relieved(index))
            .count()
    }

    /// Whether the worker has to stand down.
    #[inline]
    pub(crate) fn is_relieved(&self, index: usize) -> bool {
        self.slots[index].calls.is_relieved()
    }

    /// What the worker has to do besides taking turns: stand down, or report a step.
    pub(crate) fn calls(&self, index: usize) -> &Calls {
        &self.slots[index].calls
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn refuse_threads(&self, refuses: bool) {
        // Ordering: Relaxed, as below.
        self.refuses_threads.store(refuses, Ordering::Relaxed);
    }

    /// Whether the system grants no thread.
    #[cfg(test)]
    pub(crate) fn refuses_threads(&self) -> bool {
        // Ordering: Relaxed: one that is late only grants another thread.
        self.refuses_threads.load(Ordering::Relaxed)
    }

    /// The worker's thread is this one. Waits for who has it started, to take a worker's place: that worker is to
    /// know before anything is done in its place.
    pub(crate) fn enter(&self, index: usize) {
        let spares = lock(&self.spares);
        // Ordering: Relaxed: for the monitor's look at the system's account; `replace` runs later.
        self.slots[index]
            .thread
            .store(thread_id(), Ordering::Relaxed);
        drop(spares);
        self.pin(index);
    }

    /// The worker's thread, which is this one, is about to end.
    pub(crate) fn exit(&self, index: usize) {
        // Whoever relieves it holds the lock, and must not mean another thread with the same id.
        let _spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        self.slots[index].thread.store(0, Ordering::Relaxed);
    }

    /// Calls `f` with the id of the worker's thread, which does not end meanwhile; false when there is
    /// none. Nobody has just begun to relieve the worker then.
    pub(crate) fn with_thread(&self, index: usize, f: impl FnOnce(u32) -> bool) -> bool {
        let _spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        let thread = self.slots[index].thread.load(Ordering::Relaxed);
        thread != 0 && f(thread)
    }

    /// The worker's thread, where the system says so and there is one.
    pub(crate) fn thread(&self, index: usize) -> Option<u32> {
        // Ordering: Relaxed: for display only.
        let thread = self.slots[index].thread.load(Ordering::Relaxed);
        (thread != 0).then_some(thread)
    }

    /// Which of the workers that were asked for it stands for, as its thread knows that goes on duty.
    pub(crate) fn place(&self, index: usize) -> usize {
        // Ordering: Relaxed: written before the thread was started or, before that is read, put on duty; for others
        // the lock orders it.
        self.slots[index].place.load(Ordering::Relaxed)
    }

    /// Pins this thread, which goes on duty, to the core of its place, if it has one.
    fn pin(&self, index: usize) {
        let Some(pins) = &self.pins else { return };
        if let Err((core, error)) = pins.pin(self.place(index)) {
            log(Level::WARN, || {
                tracing::warn!(
                    target: "ganger::sched", worker = index, core, %error,
                    "the system refuses a worker its core; it runs on others"
                );
            });
        }
    }

    /// Lets this thread run on all cores, wherever its parent could run.
    pub(crate) fn unpin(&self) {
        if let Some(pins) = &self.pins {
            pins.release(0);
        }
    }

    /// Whether the worker's thread sleeps at this moment, in whatever call; `None` where the system
    /// does not say.
    pub(crate) fn is_asleep(&self, index: usize) -> Option<bool> {
        // Ordering: Relaxed, as above.
        is_asleep(self.slots[index].thread.load(Ordering::Relaxed))
    }

    /// How long the worker's thread has computed; `None` where the system does not say.
    pub(crate) fn computed(&self, index: usize) -> Option<Duration> {
        // Ordering: Relaxed, as above.
        computed(self.slots[index].thread.load(Ordering::Relaxed))
    }

    /// What the worker's thread is to report, once.
    pub(crate) fn take_report(&self, index: usize) -> Option<Relief> {
        lock(&self.slots[index].report).take()
    }

    /// The worker is in no turn, or in one again.
    pub(crate) fn set_looking(&self, index: usize, is_looking: bool) {
        // Ordering: Relaxed: for the monitor, who may be late.
        let is_looking_now = &self.slots[index].is_looking;
        is_looking_now.store(is_looking, Ordering::Relaxed);
    }

    /// Whether the worker is in no turn.
    pub(crate) fn is_looking(&self, index: usize) -> bool {
        // Ordering: Relaxed, as above.
        self.slots[index].is_looking.load(Ordering::Relaxed)
    }

    /// The worker's step is about to block its thread; until the guard is dropped.
    pub(crate) fn announce(&self, index: usize) -> Announced<'_> {
        let announcements = &self.slots[index].announcements;
        let is_outermost = announcements.begin();
        Announced(is_outermost.then_some(announcements))
    }

    /// How often the worker's steps have begun and ceased to be about to block: odd while one is.
    pub(crate) fn announcements(&self, index: usize) -> u64 {
        self.slots[index].announcements.count()
    }

    /// Has the next worker that comes to it report that.
    pub(crate) fn have_told(&self, what: Untold) {
        lock(&self.untold).push_back(what);
        for slot in &self.slots[..self.used()] {
            slot.calls.tell();
        }
    }

    /// Whether there is something to report.
    pub(crate) fn has_untold(&self) -> bool {
        !lock(&self.untold).is_empty()
    }

    /// What there is to report first, for the worker that asks; others may report what comes behind it.
    pub(crate) fn take_untold(&self, index: usize) -> Option<Untold> {
        self.slots[index].calls.told();
        lock(&self.untold).pop_front()
    }

    /// The worker's turn of that number has lasted for long, and others wait.
    pub(crate) fn set_overdue(&self, index: usize, turn: u64) {
        // Ordering: Relaxed: a hint.
        self.slots[index].overdue.store(turn, Ordering::Relaxed);
    }

    /// Whether the worker's turn of that number should give way.
    pub(crate) fn is_overdue(&self, index: usize, turn: u64) -> bool {
        // Ordering: Relaxed: a hint.
        self.slots[index].overdue.load(Ordering::Relaxed) == turn
    }
}

/// See [`Crew::announce`]; nothing where an outer call has said so already.
pub(crate) struct Announced<'a>(Option<&'a Announcements>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(announcements) = self.0 {
            announcements.end();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
