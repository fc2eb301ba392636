//! Promises checked while a scheduler runs, for tests alone; no part of the interface.
//!
//! **Problem.** A process queued while a worker sleeps is hardly ever seen: the next push, or the
//! monitor, wakes the worker and all is well again. A test that waits for results notices nothing,
//! or a hang without a message.
//!
//! **Rejected.** Asking after the fact how long each process waited: this measures the machine. A
//! single lock around all queues: the faults in question would not happen any more.
//!
//! **Protocol.** Each worker, the monitor, and all other threads together have a *version*. The
//! version is odd while they change queues or the sleepers' word, or owe a worker a wake-up. A
//! worker's version is odd from the end of a turn until it has found the next process and woken the
//! owed workers, or until it blocks. Any thread's is odd from before a push until after the look at
//! the sleepers.
//!
//! A thread that *audits* reads all versions, then the word and the queues, then the versions
//! again. When all were even and are the same, nothing moved and no thread owes anything, so the
//! state must be as promised (`audit.rs`). A worker audits before it blocks; a test, as often as it
//! likes (`audit`).
//!
//! A version is stored without a full fence, and the mark of a process is set before its push, so
//! the checks do not make good a missing fence of the scheduler.
//!
//! Each process has a mark for queued or running (G1), and notes how many were before it and how
//! many picks its workers had made (G4): `marks.rs`, `note.rs`. Workers note the victims of their
//! steals, so a process's wait is known although it is moved: `trail.rs`. All marks and notes come
//! from the points of the probe: `points.rs`.
//!
//! A broken promise ends the program with a message that names the promise and the finding.
//!
//! Nothing is checked unless [`Builder::check_promises`](crate::Builder::check_promises) asks for
//! it.

mod audit;
mod marks;
mod note;
mod points;
mod trail;

pub use audit::Summary;
pub(crate) use points::Checks;

use crate::api::handle::Handle;
use crate::config::Config;
use crate::policy::{ARRIVALS_STREAK, URGENT_STREAK};
use crate::probe::{Decide, Decider};
use crate::runtime::shared::Shared;
use audit::Auditor;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use ganger_sync::sync::{Mutex, lock};
use marks::{Bound, Worst};
use note::Note;
use points::Guard;
use std::io::{self, Write};
use std::sync::Arc;
use trail::{Fetched, Stolen};

/// Checks the present state. Returns whether it could: no thread was moving a process or about to
/// wake a worker.
///
/// Ends the program when a promise is broken.
pub fn audit(scheduler: &Handle) -> bool {
    checker(&scheduler.shared).is_some_and(|checker| checker.audit(&scheduler.shared))
}

/// Returns whether the monitor watches, or sleeps until something waits.
#[must_use]
pub fn is_watched(scheduler: &Handle) -> bool {
    !scheduler.shared.queues.idle.snapshot().unwatched
}

/// Returns the results so far; empty unless the scheduler was built with
/// [`Builder::check_promises`](crate::Builder::check_promises).
#[must_use]
pub fn summary(scheduler: &Handle) -> Summary {
    let checker = checker(&scheduler.shared);
    checker.map(Checker::summary).unwrap_or_default()
}

/// Returns the checker; `None` when nothing is checked.
pub(crate) fn checker(shared: &Shared) -> Option<&Checker> {
    shared.probe.0.get().map(|(checks, _)| checks.checker())
}

/// The checker's knowledge of a scheduler's queues.
pub(crate) struct Checker {
    /// Slots of the workers and spares, and last the monitor's.
    slots: Box<[CachePadded<Slot>]>,
    /// Pushes of other threads begun, and finished.
    begun: AtomicU64,
    over: AtomicU64,
    /// Finished looks of the monitor.
    looks: AtomicU64,
    /// Held for a push to the global queue or the urgent lane, so the order of the pushes is known.
    global: Mutex<()>,
    /// The urgent lane has been used.
    is_urgent: AtomicBool,
    /// The lane of arrivals has been used.
    has_arrivals: AtomicBool,
    auditor: Mutex<Auditor>,
    worst: Mutex<Worst>,
    bound: Bound,
}

/// Written by the thread whose it is.
#[derive(Default)]
pub(crate) struct Slot {
    version: AtomicU64,
    /// The version when the worker had last found a process, or was about to block.
    picked: AtomicU64,
    /// How many processes it has picked.
    picks: AtomicU64,
    /// Its last steal. Written by its thread, and read by thieves.
    stolen: Mutex<Option<Arc<Stolen>>>,
    /// The next pick's process, if it comes from another worker, and was in no deque of this
    /// worker.
    fetched: Mutex<Option<Fetched>>,
}

impl Slot {
    /// Returns whether the version was even.
    fn begin(&self) -> bool {
        // Ordering: Relaxed: this thread wrote it.
        let version = self.version.load(Ordering::Relaxed);
        if version % 2 == 1 {
            return false;
        }
        // Ordering: Relaxed: the fence after it pairs with the fences in `Checker::look` and
        // `Checker::confirm`. A reader that saw a write behind the fence sees this version.
        self.version.store(version + 1, Ordering::Relaxed);
        // Ordering: Release, for the store before: see there. A full fence here could stand in for
        // a fence that the scheduler lacks.
        fence(Ordering::Release);
        true
    }

    /// Notes that the thread owes nothing any more.
    fn settle(&self) {
        // Ordering: Relaxed: this thread writes both, and the version orders them for others.
        let next = self.version.load(Ordering::Relaxed).next_multiple_of(2);
        // Ordering: Relaxed: the version orders it for other threads.
        self.picked.store(next, Ordering::Relaxed);
        self.end();
    }

    fn end(&self) {
        // Ordering: Relaxed: this thread wrote it.
        let version = self.version.load(Ordering::Relaxed);
        if version % 2 == 1 {
            // Ordering: Release pairs with the Acquire in `Checker::versions`: a reader of this
            // sees the earlier writes.
            self.version.store(version + 1, Ordering::Release);
        }
    }
}

impl Checker {
    /// Creates a checker for `slots` workers and spares.
    fn new(config: &Config, slots: usize) -> Self {
        Self {
            slots: (0..=slots).map(|_| CachePadded::default()).collect(),
            begun: AtomicU64::new(0),
            over: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            global: Mutex::new(()),
            is_urgent: AtomicBool::new(false),
            has_arrivals: AtomicBool::new(false),
            auditor: Mutex::new(Auditor::default()),
            worst: Mutex::new(Worst::default()),
            bound: Bound {
                rotation: config.rotation.into(),
                batch: config.global_batch as u64,
            },
        }
    }

    /// Puts a process behind `before` others into a shared queue, until the guard is dropped.
    fn put(&self, before: impl Fn() -> usize) -> Guard<'_> {
        let one = lock(&self.global);
        Guard::Put {
            checker: self,
            note: Arc::new(Note::new(None, before(), self)),
            _one: one,
        }
    }

    /// Returns the promised bound of a process with `before` others in front.
    fn bound_of(&self, before: u64) -> u64 {
        // Ordering: Relaxed: a late reader has a shorter bound, which holds for all that it has
        // seen.
        let is_urgent = self.is_urgent.load(Ordering::Relaxed);
        // Ordering: Relaxed: a late reader has a shorter bound, which holds for all that it has
        // seen.
        let has_arrivals = self.has_arrivals.load(Ordering::Relaxed);
        let each = |is_used: bool, streak: u32| match is_used {
            true => u64::from(streak) + 1,
            false => 1,
        };
        each(is_urgent, URGENT_STREAK) * each(has_arrivals, ARRIVALS_STREAK) * self.bound.of(before)
    }

    fn monitor(&self) -> &Slot {
        &self.slots[self.slots.len() - 1]
    }
}

/// Ends the program; in unit tests, the test. A panic would be contained where a step pushes.
fn violation(promise: &str, found: &str) -> ! {
    let message = format!("{promise} is broken: {found}");
    if Decider::note_violation(&message) || cfg!(test) {
        panic!("{message}");
    }
    // Not by a macro: a test's output would be caught, and go with the program.
    let _told = writeln!(io::stderr(), "ganger: {message}; aborting");
    std::process::abort()
}
