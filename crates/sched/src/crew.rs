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
//!    goes to the global queue, and it is a spare itself.
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
//! | `on_duty` | under the lock | the spare that waits |
//! | `announcements` | the worker | the monitor |
//! | `overdue` | the monitor | the worker, in a step |
//! | `is_looking` | the worker, when it finds nothing, and when it finds something again | the monitor |
//! | `thread` | the worker, under the lock when it ends | the monitor; under the lock, who relieves it |
//! | `place` | under the lock, before the thread starts or goes on duty | the worker; under the lock |
//! | `report` | whoever relieves a worker | the spare that takes its place, once |

mod calls;
mod thread_account;

use crate::clock::Since;
use crate::contain::log;
use crate::crew::calls::{Announcements, Calls};
use crate::crew::thread_account::{computed, is_asleep, thread_id};
use crate::pinning::Pins;
use crate::reaper::Counted;
use crate::reports::{Line, LongStep};
use crate::shared::Shared;
use crate::token::Token;
use crate::worker;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use ganger_sync::sync::{Mutex, lock};
use ganger_sync::{CachePadded, Parker};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tracing::Level;

pub(crate) struct Crew {
    workers: usize,
    slots: Box<[CachePadded<Slot>]>,
    /// Slots from here on have never had a thread.
    used: AtomicUsize,
    spares: Mutex<Spares>,
    /// Steps of relieved workers that nobody has reported yet.
    untold: Mutex<VecDeque<Relief>>,
    pins: Option<Pins>,
    /// The system grants no thread from now on.
    #[cfg(test)]
    refuses_threads: AtomicBool,
}

#[derive(Default)]
struct Slot {
    calls: Calls,
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
    fn new(place: usize) -> Self {
        Self {
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

#[derive(Default)]
struct Spares {
    /// Threads that wait.
    waiting: Vec<usize>,
    /// Slots without a thread, the next one last.
    free: Vec<(usize, Deque<Token>)>,
    /// How many threads there are that wait or are on duty in a worker's place.
    threads: usize,
    /// When it was said last that nobody was left when somebody was needed.
    warned: Option<Since>,
}

/// What a spare does next.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It is needed.
    OnDuty,
    /// It ends: it has not been needed for a while, or the scheduler has halted.
    Leave,
}

impl Crew {
    pub(crate) fn new(workers: usize, slots: usize, pins: Option<Pins>) -> Self {
        Self {
            workers,
            slots: (0..slots)
                .map(|slot| CachePadded::new(Slot::new(slot)))
                .collect(),
            used: AtomicUsize::new(workers),
            spares: Mutex::new(Spares::default()),
            untold: Mutex::default(),
            pins,
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
        // Ordering: Acquire pairs with the Release in `relieve`.
        self.used.load(Ordering::Acquire)
    }

    /// How many threads there are beyond the workers that were asked for.
    pub(crate) fn spares(&self) -> usize {
        lock(&self.spares).threads
    }

    /// How many workers have been relieved and not stood down yet.
    pub(crate) fn relieved(&self) -> usize {
        (0..self.used())
            .filter(|&index| self.is_relieved(index))
            .count()
    }

    /// Gives the slots of spares their deques.
    pub(crate) fn set_free(&self, deques: impl DoubleEndedIterator<Item = (usize, Deque<Token>)>) {
        lock(&self.spares).free.extend(deques.rev());
    }

    /// Whether the worker has to stand down.
    #[inline]
    pub(crate) fn is_relieved(&self, index: usize) -> bool {
        self.slots[index].calls.is_relieved()
    }

    /// Whether the worker has to do something else than take turns: stand down, or report a step.
    #[inline]
    pub(crate) fn is_called(&self, index: usize) -> bool {
        self.slots[index].calls.is_any()
    }

    /// The worker's thread is this one.
    pub(crate) fn enter(&self, index: usize) {
        // Ordering: Relaxed: for the monitor's look at the system's account; `relieve` runs later.
        self.slots[index]
            .thread
            .store(thread_id(), Ordering::Relaxed);
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

    /// Pins this thread, which goes on duty, to the core of its place, if it has one.
    fn pin(&self, index: usize) {
        let Some(pins) = &self.pins else { return };
        // Ordering: Relaxed: written before the thread was started or, before that is read, put on duty.
        let place = self.slots[index].place.load(Ordering::Relaxed);
        if let Err((core, error)) = pins.pin(place) {
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

    /// Has the next worker that comes to it report a step of a relieved worker.
    pub(crate) fn have_told(&self, relief: Relief) {
        lock(&self.untold).push_back(relief);
        for slot in &self.slots[..self.used()] {
            slot.calls.tell();
        }
    }

    /// What there is to report first, for the worker that asks; others may report what comes behind it.
    pub(crate) fn take_untold(&self, index: usize) -> Option<Relief> {
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

    /// Whether the worker may block for as long as it likes: somebody has taken its place, or a spare
    /// is left that can.
    pub(crate) fn has_relief(&self, index: usize) -> bool {
        let spares = lock(&self.spares);
        self.is_relieved(index) || !spares.waiting.is_empty() || !spares.free.is_empty()
    }

    /// Whether a spare is left.
    #[cfg(feature = "sim")]
    pub(crate) fn has_spare(&self) -> bool {
        let spares = lock(&self.spares);
        !spares.waiting.is_empty() || !spares.free.is_empty()
    }

    /// Puts a spare on duty in the place of a worker, which stands down after its step; the spare
    /// reports why, if somebody gives a reason that is worth a line. Returns whether the worker has been relieved by this.
    ///
    /// Starts a thread when none waits.
    pub(crate) fn relieve(
        &self,
        shared: &Arc<Shared>,
        index: usize,
        relief: Option<Relief>,
    ) -> bool {
        let mut spares = lock(&self.spares);
        let slot = &self.slots[index];
        let is_relieved = slot.calls.is_relieved();
        // By now it may have been relieved by somebody else, and have stood down or left.
        let is_off =
            spares.waiting.contains(&index) || spares.free.iter().any(|(free, _)| *free == index);
        if is_relieved || is_off {
            return false;
        }
        let next = match self.call_spare(shared, &mut spares, index, relief.as_ref()) {
            Ok(next) => next,
            Err(error) => {
                let interval = shared.config.report_interval;
                let is_due = spares.warned.is_none_or(|at| at.elapsed() >= interval);
                if is_due {
                    spares.warned = Some(Since::before(Duration::ZERO));
                }
                drop(spares);
                if is_due {
                    warn(shared, &error);
                }
                return false;
            }
        };
        // Before the worker can know, and say that the step is over.
        if let Some(Relief { step, turn, line }) = relief {
            let interval = shared.config.report_interval;
            shared.reports.add(step, turn, line, interval);
        }
        slot.calls.relieve();
        // Ordering: Relaxed: the lock orders it; a thread that is there has entered before its first turn.
        let thread = slot.thread.load(Ordering::Relaxed);
        if let Some(pins) = self.pins.as_ref().filter(|_| thread != 0) {
            pins.release(thread);
        }
        // Ordering: Release pairs with the Acquire in `is_on_duty`.
        self.slots[next].on_duty.store(true, Ordering::Release);
        drop(spares);
        self.slots[next].parker.unpark();
        true
    }

    /// A relieved worker, whose deque is empty, waits until it is needed, for as long as `keep`.
    pub(crate) fn stand_down(
        &self,
        index: usize,
        keep: Duration,
        is_halted: impl Fn() -> bool,
    ) -> Next {
        let slot = &self.slots[index];
        self.step_back(index);
        loop {
            if self.is_on_duty(index) {
                self.pin(index);
                return Next::OnDuty;
            }
            let is_needed = is_halted() || slot.parker.park_timeout(keep);
            if is_needed && !is_halted() {
                continue;
            }
            // Whoever else has taken it out has put it on duty.
            if self.wait_no_more(index) {
                // After the halt everybody looks once more: what it has given away when it stood down
                // may have nobody else.
                return if is_halted() {
                    Next::OnDuty
                } else {
                    Next::Leave
                };
            }
        }
    }

    /// A relieved worker waits from now on.
    pub(crate) fn step_back(&self, index: usize) {
        let slot = &self.slots[index];
        let mut spares = lock(&self.spares);
        // Ordering: Relaxed: the lock orders it.
        slot.on_duty.store(false, Ordering::Relaxed);
        slot.calls.stand_down();
        spares.waiting.push(index);
    }

    /// Whether one that waited has been put on duty.
    pub(crate) fn is_on_duty(&self, index: usize) -> bool {
        // Ordering: Acquire pairs with the Release in `relieve`.
        self.slots[index].on_duty.load(Ordering::Acquire)
    }

    /// Takes one out that waits; `false` when it does not.
    pub(crate) fn wait_no_more(&self, index: usize) -> bool {
        let mut spares = lock(&self.spares);
        let place = spares.waiting.iter().position(|&it| it == index);
        place.map(|place| spares.waiting.remove(place)).is_some()
    }

    /// The thread of that slot has ended: another may have it.
    pub(crate) fn leave(&self, index: usize, deque: Deque<Token>) {
        let mut spares = lock(&self.spares);
        spares.threads -= 1;
        spares.free.push((index, deque));
    }

    /// A thread that waits, or a new one, for the place of that worker, which is to report that.
    fn call_spare(
        &self,
        shared: &Arc<Shared>,
        spares: &mut Spares,
        relieved: usize,
        relief: Option<&Relief>,
    ) -> Result<usize, NoSpare> {
        // Ordering: Relaxed: the lock orders it.
        let place = self.slots[relieved].place.load(Ordering::Relaxed);
        let give = |next: usize| {
            // Ordering: Relaxed, as in `pin`.
            self.slots[next].place.store(place, Ordering::Relaxed);
            let told = relief.filter(|relief| relief.line != Line::Suppress);
            *lock(&self.slots[next].report) = told.cloned();
        };
        if let Some(next) = spares.waiting.pop() {
            give(next);
            return Ok(next);
        }
        let (index, deque) = spares.free.pop().ok_or(NoSpare::Limit)?;
        // Before there is a thread, which looks for its report as soon as it runs.
        give(index);
        // Ordering: Release pairs with the Acquire in `used`: thieves look at its deque from now on.
        self.used.fetch_max(index + 1, Ordering::Release);
        match start_worker(shared, index, deque) {
            Ok(()) => {
                spares.threads += 1;
                Ok(index)
            }
            Err((error, deque)) => {
                *lock(&self.slots[index].report) = None;
                spares.free.push((index, deque));
                Err(NoSpare::System(error))
            }
        }
    }

    /// Lets spares see that the scheduler has halted.
    pub(crate) fn wake_all(&self) {
        let waiting = lock(&self.spares).waiting.clone();
        for index in waiting {
            self.slots[index].parker.unpark();
        }
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

/// Why nobody can take a worker's place.
#[derive(Debug, thiserror::Error)]
enum NoSpare {
    #[error(
        "there are as many spare threads as there may be; raise `max_spares`, or block elsewhere"
    )]
    Limit,
    #[error("the system refuses another thread: {0}")]
    System(io::Error),
}

fn warn(shared: &Shared, error: &NoSpare) {
    let max_spares = shared.config.max_spares;
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", max_spares, %error,
            "steps keep all workers, and processes wait until one returns"
        );
    });
}

/// Starts the thread of a worker.
///
/// # Errors
/// When the system refuses one; with the deque inside.
pub(crate) fn start_worker(
    shared: &Arc<Shared>,
    index: usize,
    deque: Deque<Token>,
) -> Result<(), (io::Error, Deque<Token>)> {
    #[cfg(feature = "sim")]
    let Some(deque) = crate::sim::hire(index, deque) else {
        return Ok(());
    };
    let name = format!("{}-{index}", shared.config.thread_name);
    let mut builder = thread::Builder::new().name(name);
    if let Some(bytes) = shared.config.stack_size {
        builder = builder.stack_size(bytes);
    }
    // Ordering: Relaxed: one that is late only grants another thread.
    #[cfg(test)]
    if shared.crew.refuses_threads.load(Ordering::Relaxed) {
        // More than any system has.
        builder = builder.stack_size(usize::MAX / 8);
    }
    let counted = Counted::new(shared);
    let mine = Arc::clone(shared);
    // What a refused thread was to have is dropped with it.
    let parcel = Arc::new(Mutex::new(Some(deque)));
    let theirs = Arc::clone(&parcel);
    let spawned = builder.spawn(move || {
        let _counted = counted;
        let deque = lock(&theirs).take();
        if let Some(deque) = deque {
            worker::work(mine, index, deque);
        }
    });
    match spawned {
        Ok(_) => Ok(()),
        Err(error) => match lock(&parcel).take() {
            Some(deque) => Err((error, deque)),
            None => unreachable!("the thread that was to take it was refused"),
        },
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
