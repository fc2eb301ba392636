//! The slots of worker threads: as many workers are active as configured, also while steps block.
//!
//! **Problem.** A step that blocks its thread, or computes for long, takes a worker away from all
//! other processes. The scheduler can't take the thread back before the step returns.
//!
//! **Rejected.** Handing the worker's deque to another thread: at each push from inside the step
//! the owner would have to check whether it still owns the deque. More workers from the start: they
//! would compete for the processors whenever no step blocks.
//!
//! **Protocol.** Every thread has a slot with a deque of its own. Slots of spare threads are filled
//! when they are first needed.
//! 1. The monitor, or a step about to block, has a worker *replaced*: a spare thread becomes active
//!    in its place, and steals its waiting processes.
//! 2. A worker that comes out of a step and finds itself replaced *retires*: it moves its deque to
//!    the global queue, and waits as a spare. A worker replaced while it looks for work retires
//!    before it looks again. The thread replacing a sleeping worker wakes it.
//! 3. A spare not needed for a while ends. Its slot is free again.
//!
//! So as many threads as configured are active, and one more while a replaced worker comes out of
//! its step.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `is_replaced` | under the lock | the worker, after each turn and before sleep; the monitor |
//! | `is_active` | under the lock | the spare that waits; workers that balance; under the lock |
//! | `announcements` | the worker | the monitor |
//! | `overdue` | the monitor | the worker, in a step |
//! | `alert`, `timers` | the worker | the worker |
//! | `is_looking` | the worker, when it finds nothing, and when it finds something | the monitor |
//! | `thread` | the worker, under the lock when it ends | the monitor; under the lock |
//! | `place` | under the lock, before its thread is active | the worker; under the lock |

mod replace;

use crate::base::contain::log;
use crate::runtime::spares::Spares;
use ganger_os::{Pins, thread_id};
use ganger_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, Parker};
use tracing::Level;

pub(crate) struct WorkerSlots {
    workers: usize,
    slots: Box<[CachePadded<WorkerSlot>]>,
    /// Slots from here on have never had a thread.
    used: AtomicUsize,
    spares: Mutex<Spares>,
    pins: Option<Pins>,
    /// The system grants no thread from now on.
    #[cfg(test)]
    refuses_threads: AtomicBool,
}

#[derive(Default)]
pub(crate) struct WorkerSlot {
    /// A spare has taken the worker's place.
    is_replaced: AtomicBool,
    /// Whether the thread stands for a configured worker, or did until a spare took its place.
    is_active: AtomicBool,
    announcements: Announcements,
    /// The number of the turn whose time is over, if it is still the present turn.
    overdue: AtomicU64,
    /// From this coarse time on something may come before a pick.
    alert: AtomicU64,
    /// From this coarse time on a timer may be due at the worker's shard. Not before `alert`.
    timers: AtomicU64,
    /// The thread's id, for the system; 0 without a thread.
    thread: AtomicU32,
    /// The worker looks for work, or sleeps: it is in no turn.
    is_looking: AtomicBool,
    /// The index of the configured worker whose place the thread has, while it is active.
    place: AtomicUsize,
    parker: Parker,
}

impl WorkerSlot {
    /// Creates a slot whose thread is in no turn until it has found work, however long it takes to
    /// start.
    fn new(place: usize, is_active: bool) -> Self {
        Self {
            is_active: AtomicBool::new(is_active),
            timers: AtomicU64::new(u64::MAX),
            is_looking: AtomicBool::new(true),
            place: AtomicUsize::new(place),
            ..Self::default()
        }
    }

    /// Returns whether a spare has taken the worker's place, so that the worker has to retire.
    pub(crate) fn is_replaced(&self) -> bool {
        // Ordering: Relaxed: a worker that reads it late does so after its next step. Where the
        // order counts, the lock of the spares is held. A worker that announces its sleep after
        // `Idle::wake` has looked for it acquires the sleepers' lock, which `wake` released behind
        // the store.
        self.is_replaced.load(Ordering::Relaxed)
    }

    /// Returns the coarse time, in nanoseconds, from which on the worker looks for due work.
    pub(crate) fn alert(&self) -> u64 {
        // Ordering: Relaxed: the same thread writes and reads it.
        self.alert.load(Ordering::Relaxed)
    }

    /// Returns the same time, for timers at the worker's shard.
    pub(crate) fn timers(&self) -> u64 {
        // Ordering: Relaxed: the same thread writes and reads it.
        self.timers.load(Ordering::Relaxed)
    }

    /// Sets the alert after a look of the worker. `other` is when something else may be due.
    pub(crate) fn set_alert(&self, other: u64) {
        // Ordering: Relaxed: the same thread writes and reads it.
        self.alert
            .store(other.min(self.timers()), Ordering::Relaxed);
    }

    /// Notes that the worker has looked for due timers at its shard.
    pub(crate) fn set_timers(&self, from: u64) {
        // Ordering: Relaxed: the same thread writes and reads it.
        self.timers.store(from, Ordering::Relaxed);
    }

    /// Sets the alert for something due at the worker's shard from then on, in nanoseconds of the
    /// coarse time.
    pub(crate) fn alert_from(&self, from: u64) {
        if from < self.timers() {
            self.set_timers(from);
            self.set_alert(self.alert());
        }
    }
}

impl WorkerSlots {
    pub(crate) fn new(workers: usize, slots: usize, pins: Option<Pins>) -> Self {
        Self {
            workers,
            slots: (0..slots)
                .map(|slot| CachePadded::new(WorkerSlot::new(slot, slot < workers)))
                .collect(),
            used: AtomicUsize::new(workers),
            spares: Mutex::new(Spares::default()),
            pins,
            #[cfg(test)]
            refuses_threads: AtomicBool::new(false),
        }
    }

    /// Returns the number of active workers.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Returns the number of slots that have ever had a thread: the first slots.
    pub(crate) fn used(&self) -> usize {
        // Ordering: Relaxed: slots and deques are there from the beginning. A thread's pushes and
        // looks come after its start. A reader that needs them is behind a fence or a lock,
        // which orders the load behind the start.
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of workers that have been replaced and have not retired.
    pub(crate) fn replaced(&self) -> usize {
        let used = &self.slots[..self.used()];
        used.iter().filter(|slot| slot.is_replaced()).count()
    }

    /// Returns whether the worker has to retire.
    pub(crate) fn is_replaced(&self, index: usize) -> bool {
        self.slots[index].is_replaced()
    }

    /// Returns the worker's own slot.
    pub(crate) fn slot(&self, index: usize) -> &WorkerSlot {
        &self.slots[index]
    }

    #[cfg(all(test, not(ganger_loom)))]
    pub(crate) fn refuse_threads(&self, refuses: bool) {
        // Ordering: Relaxed: a thread that reads it late only grants another thread.
        self.refuses_threads.store(refuses, Ordering::Relaxed);
    }

    /// Returns whether the system grants no thread.
    #[cfg(test)]
    pub(crate) fn refuses_threads(&self) -> bool {
        // Ordering: Relaxed: a thread that reads it late only grants another thread.
        self.refuses_threads.load(Ordering::Relaxed)
    }

    /// Enters the slot, on the worker's own thread. Waits for the thread that has started it in a
    /// worker's place: the replaced worker must know before the new thread does anything.
    pub(crate) fn enter(&self, index: usize) {
        let spares = lock(&self.spares);
        // Ordering: Relaxed: for the monitor's look at the system's account; `replace` runs later.
        self.slots[index]
            .thread
            .store(thread_id(), Ordering::Relaxed);
        drop(spares);
        self.pin(index);
    }

    /// Leaves the slot, on the worker's own thread, which is about to end.
    pub(crate) fn exit(&self, index: usize) {
        // A thread that replaces this worker holds the lock, and must not mean another thread with
        // the same id.
        let _spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        self.slots[index].thread.store(0, Ordering::Relaxed);
    }

    /// Calls `f` with the id of the worker's thread, which does not end meanwhile; `false` without
    /// a thread. No worker is replaced meanwhile.
    pub(crate) fn with_thread(&self, index: usize, f: impl FnOnce(u32) -> bool) -> bool {
        let _spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        let thread = self.slots[index].thread.load(Ordering::Relaxed);
        thread != 0 && f(thread)
    }

    /// Returns the system's id of the worker's thread, where known.
    pub(crate) fn thread(&self, index: usize) -> Option<u32> {
        // Ordering: Relaxed: for display only.
        let thread = self.slots[index].thread.load(Ordering::Relaxed);
        (thread != 0).then_some(thread)
    }

    /// Returns the index of the configured worker whose place the slot has, as its own thread
    /// knows.
    pub(crate) fn place(&self, index: usize) -> usize {
        // Ordering: Relaxed: written before the thread starts, or before the Release of
        // `is_active`, which the thread acquires; for others the lock orders it.
        self.slots[index].place.load(Ordering::Relaxed)
    }

    /// Pins this thread, which becomes active, to the core of its place, if it has one.
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

    /// Notes whether the worker is between two turns.
    pub(crate) fn set_looking(&self, index: usize, is_looking: bool) {
        let slot = &self.slots[index];
        // Ordering: Relaxed: for the monitor, which may read it late.
        slot.is_looking.store(is_looking, Ordering::Relaxed);
    }

    /// Returns whether the worker is in no turn.
    pub(crate) fn is_looking(&self, index: usize) -> bool {
        // Ordering: Relaxed: the monitor may read it late.
        self.slots[index].is_looking.load(Ordering::Relaxed)
    }

    /// Announces that the worker's step is about to block its thread, until the guard is dropped.
    pub(crate) fn announce(&self, index: usize) -> Announced<'_> {
        let announcements = &self.slots[index].announcements;
        Announced(announcements.begin().then_some(announcements))
    }

    /// Returns how often the worker's steps have begun and ceased to be about to block: odd while a
    /// step is.
    pub(crate) fn announcements(&self, index: usize) -> u64 {
        self.slots[index].announcements.count()
    }

    /// Notes that the turn has lasted for long while other processes wait.
    pub(crate) fn set_overdue(&self, index: usize, turn: u64) {
        // Ordering: Relaxed: a hint.
        self.slots[index].overdue.store(turn, Ordering::Relaxed);
    }

    /// Returns whether the worker's turn `turn` should give way.
    pub(crate) fn is_overdue(&self, index: usize, turn: u64) -> bool {
        // Ordering: Relaxed: a hint.
        self.slots[index].overdue.load(Ordering::Relaxed) == turn
    }
}

/// How often a worker's steps have begun and ceased to be about to block: odd while a step is. So
/// the monitor sees each announcement between two looks. Written by the worker.
#[derive(Default)]
struct Announcements(AtomicU64);

impl Announcements {
    /// Announces that the step is about to block; `false` inside of another announcement, which
    /// continues.
    #[must_use]
    fn begin(&self) -> bool {
        let is_outermost = self.count().is_multiple_of(2);
        if is_outermost {
            self.bump();
        }
        is_outermost
    }

    fn bump(&self) {
        // Ordering: Relaxed: a monitor that reads it late takes the step for a step without
        // announcement.
        self.0.store(self.count() + 1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        // Ordering: Relaxed: the monitor may read it late.
        self.0.load(Ordering::Relaxed)
    }
}

/// See [`WorkerSlots::announce`]; nothing inside of another announcement.
pub(crate) struct Announced<'a>(Option<&'a Announcements>);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(announcements) = self.0 {
            announcements.bump();
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
