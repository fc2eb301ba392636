//! Promises that are checked while a scheduler runs, for tests alone; no part of the interface.
//!
//! **Problem.** A process that lies beside a sleeping worker is hardly ever seen: the next push, or
//! the monitor, wakes the worker and all is well again. A test that waits for results notices
//! nothing, or a hang that says nothing.
//!
//! **Rejected.** Asking after the fact how long each process waited: that measures the machine. One
//! lock around all queues: nothing that is looked for would happen any more.
//!
//! **Protocol.** Each worker, the monitor, and all other threads together have a *version*, which
//! is odd while they change queues or the sleepers' word, or owe a worker a wake-up: a worker from
//! the end of a turn until it has found the next process and woken the workers it should, or until
//! it blocks; every thread from before a push until after the look at the sleepers. The thread that
//! *audits* reads all versions, then the word and the queues, then the versions again: when all
//! were even and are the same, nothing moved, no thread owes anything, and what was read must be as
//! promised (`audit.rs`). A worker audits before it blocks; a test, as often as it likes (`audit`).
//!
//! A version is stored without a full fence, and the mark of a process is set before its push, so
//! that none of this makes good a fence that the scheduler has left out.
//!
//! Each process has a mark that says whether it is queued or runs (G1), and notes how many were
//! before it and how many picks its workers had made (G4): `marks.rs`, `note.rs`. Workers note the
//! victims of their steals, so that a process's wait is known although it is moved: `trail.rs`.
//!
//! A promise that is broken ends the program with a message that says which, and what was found.
//!
//! Nothing is checked unless [`Builder::check_promises`](crate::Builder::check_promises) asks for
//! it.

mod audit;
mod marks;
mod note;
mod trail;

pub use audit::Summary;
pub(crate) use marks::ProcessCheck;

use crate::api::handle::Handle;
use crate::base::config::Config;
use crate::core::local::LocalQueue;
use crate::core::shared::Shared;
use crate::core::token::Token;
use crate::worker::ladder::URGENT_STREAK;
use audit::Auditor;
use ganger_mpsc::Injector;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use ganger_sync::sync::{Mutex, lock};
use marks::{Bound, Worst};
use note::Note;
use std::io::{self, Write};
use std::sync::Arc;
use trail::{Fetched, Stolen};

/// Checks what can be seen at this moment. Returns whether that was anything: no thread was moving
/// a process or about to wake a worker.
///
/// Ends the program when a promise is broken.
pub fn audit(scheduler: &Handle) -> bool {
    scheduler.shared.check.audit(&scheduler.shared)
}

/// Whether the monitor watches, or sleeps until something waits.
#[must_use]
pub fn is_watched(scheduler: &Handle) -> bool {
    !scheduler.shared.idle.snapshot().unwatched
}

/// What has been checked so far; nothing unless the scheduler was built with
/// [`Builder::check_promises`](crate::Builder::check_promises).
#[must_use]
pub fn summary(scheduler: &Handle) -> Summary {
    let check = &scheduler.shared.check;
    check
        .book
        .as_ref()
        .map(|book| book.summary())
        .unwrap_or_default()
}

pub(crate) struct Check {
    /// None when nothing is to be checked.
    book: Option<Box<Book>>,
}

struct Book {
    /// Those of the workers and spares, and last the monitor's.
    slots: Box<[CachePadded<Slot>]>,
    /// Pushes of other threads that have begun, and that are over.
    begun: AtomicU64,
    over: AtomicU64,
    /// Looks of the monitor that are over.
    looks: AtomicU64,
    /// Held for a push to the global queue or the urgent lane, so that the order of the pushes is
    /// known.
    global: Mutex<()>,
    /// The urgent lane has been used.
    is_urgent: AtomicBool,
    auditor: Mutex<Auditor>,
    worst: Mutex<Worst>,
    bound: Bound,
}

/// Written by the thread whose it is.
#[derive(Default)]
pub(crate) struct Slot {
    version: AtomicU64,
    /// What the version was when it had last found a process, or was about to block.
    picked: AtomicU64,
    /// How many processes it has picked.
    picks: AtomicU64,
    /// Its last steal. Written by its thread, and read by thieves.
    stolen: Mutex<Option<Arc<Stolen>>>,
    /// The process that it picks next comes from another worker, and was in no deque of its own.
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
        // Ordering: Relaxed, and the fence after it pairs with the one in `audit`: a reader that
        // sees what comes next sees this.
        self.version.store(version + 1, Ordering::Relaxed);
        // Ordering: Release, as above; it is no full fence.
        fence(Ordering::Release);
        true
    }

    fn end(&self) {
        // Ordering: Relaxed: this thread wrote it.
        let version = self.version.load(Ordering::Relaxed);
        if version % 2 == 1 {
            // Ordering: Release pairs with the Acquire in `still`: a reader of this sees what came
            // before.
            self.version.store(version + 1, Ordering::Release);
        }
    }
}

impl Check {
    /// For that many workers and spares.
    pub(crate) fn new(config: &Config, slots: usize) -> Self {
        let book = config.is_checked.then(|| {
            Box::new(Book {
                slots: (0..=slots).map(|_| CachePadded::default()).collect(),
                begun: AtomicU64::new(0),
                over: AtomicU64::new(0),
                looks: AtomicU64::new(0),
                global: Mutex::new(()),
                is_urgent: AtomicBool::new(false),
                auditor: Mutex::new(Auditor::default()),
                worst: Mutex::new(Worst::default()),
                bound: Bound {
                    rotation: config.rotation.into(),
                    batch: config.global_batch as u64,
                },
            })
        });
        Self { book }
    }

    /// The worker looks for a process, or pushes one without waking a worker.
    pub(crate) fn begin_pick(&self, worker: usize) {
        if let Some(book) = &self.book {
            book.slots[worker].begin();
        }
    }

    /// It owes nothing any more.
    pub(crate) fn end_pick(&self, worker: usize) {
        if let Some(book) = &self.book {
            let slot = &book.slots[worker];
            // Ordering: Relaxed: this thread writes both, and the version orders them for others.
            let next = slot.version.load(Ordering::Relaxed).next_multiple_of(2);
            // Ordering: Relaxed, as above.
            slot.picked.store(next, Ordering::Relaxed);
            slot.end();
        }
    }

    /// This thread, a worker if so, pushes a process and looks for a worker to wake, until the
    /// guard is dropped.
    pub(crate) fn begin_push(&self, worker: impl FnOnce() -> Option<usize>) -> Pushing<'_> {
        let Some(book) = &self.book else {
            return Pushing::Unchecked;
        };
        match worker() {
            Some(worker) => {
                let slot = &book.slots[worker];
                if slot.begin() {
                    Pushing::Worker(slot)
                } else {
                    Pushing::Unchecked
                }
            }
            None => {
                // Ordering: SeqCst here and in `drop`; the global queue's push is as strong.
                book.begun.fetch_add(1, Ordering::SeqCst);
                Pushing::Other(&book.over)
            }
        }
    }

    /// The monitor looks, or is about to go to sleep.
    pub(crate) fn begin_look(&self) {
        if let Some(book) = &self.book {
            book.monitor().begin();
        }
    }

    /// It has looked at everything, and waits for the next time.
    pub(crate) fn end_look(&self) {
        if let Some(book) = &self.book {
            // Ordering: Relaxed: the version orders it.
            let looks = book.looks.load(Ordering::Relaxed);
            // Ordering: Relaxed, as above.
            book.looks.store(looks + 1, Ordering::Relaxed);
            book.monitor().end();
        }
    }

    /// It sleeps until something waits.
    pub(crate) fn rest(&self) {
        if let Some(book) = &self.book {
            book.monitor().end();
        }
    }

    /// Pushes a process to the deque of this thread.
    pub(crate) fn push(&self, queue: &LocalQueue, token: Token) {
        if let Some(book) = &self.book {
            let note = Note::new(Some(queue.index), queue.deque.len(), book);
            // It makes no pick before the push is over.
            note.settle(book);
            token.cell().check.queue(&Arc::new(note));
        }
        queue.deque.push(token);
    }

    /// Pushes a process to the global queue.
    pub(crate) fn push_global(&self, global: &Injector<Token>, token: Token) {
        let Some(book) = &self.book else {
            return global.push(token);
        };
        book.put(
            || global.len(),
            |note| {
                token.cell().check.queue(note);
                global.push(token);
            },
        );
    }

    /// Pushes a process to the urgent lane, after which others may wait longer.
    pub(crate) fn push_urgent(&self, urgent: &Injector<Token>, token: Token) {
        let Some(book) = &self.book else {
            return urgent.push(token);
        };
        // Ordering: Relaxed: a late reader has a shorter bound, which holds for what it has
        // seen.
        book.is_urgent.store(true, Ordering::Relaxed);
        book.put(
            || urgent.len(),
            |note| {
                token.cell().check.queue(note);
                urgent.push(token);
            },
        );
    }

    /// Moves a process that is queued to the global queue.
    pub(crate) fn move_global(&self, global: &Injector<Token>, token: Token) {
        let Some(book) = &self.book else {
            return global.push(token);
        };
        book.put(
            || global.len(),
            |note| {
                token.cell().check.note(note);
                global.push(token);
            },
        );
    }

    /// The worker has picked a process.
    pub(crate) fn pick(&self, worker: usize, token: &Token) {
        if let Some(book) = &self.book {
            token.cell().check.pick(worker, book);
        }
    }

    /// Checks the queues; see `audit`.
    pub(crate) fn audit(&self, shared: &Shared) -> bool {
        self.book.as_ref().is_some_and(|book| book.audit(shared))
    }
}

impl Book {
    /// Puts a process behind so many into a queue that all share.
    fn put(&self, before: impl FnOnce() -> usize, push: impl FnOnce(&Arc<Note>)) {
        let _one = lock(&self.global);
        let note = Arc::new(Note::new(None, before(), self));
        push(&note);
        note.settle(self);
    }

    /// What is promised to a process that has so many before it.
    fn bound_of(&self, before: u64) -> u64 {
        // Ordering: Relaxed, as in `push_urgent`.
        let is_urgent = self.is_urgent.load(Ordering::Relaxed);
        let each = if is_urgent {
            u64::from(URGENT_STREAK) + 1
        } else {
            1
        };
        each * self.bound.of(before)
    }

    fn monitor(&self) -> &Slot {
        &self.slots[self.slots.len() - 1]
    }
}

/// See [`Check::begin_push`].
pub(crate) enum Pushing<'a> {
    /// Nothing is checked, or an outer section of this thread goes on.
    Unchecked,
    Worker(&'a Slot),
    Other(&'a AtomicU64),
}

impl Drop for Pushing<'_> {
    fn drop(&mut self) {
        match self {
            Self::Unchecked => {}
            Self::Worker(slot) => slot.end(),
            Self::Other(over) => {
                // Ordering: SeqCst, as in `begin_push`.
                over.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Ends the program; in unit tests, the test. A panic would be contained where a step pushes.
fn broken(promise: &str, found: &str) -> ! {
    let message = format!("{promise} is broken: {found}");
    #[cfg(feature = "sim")]
    if crate::sim::note_broken(&message) {
        panic!("{message}");
    }
    if cfg!(test) {
        panic!("{message}");
    }
    // Not by a macro: a test's output would be caught, and go with the program.
    let _told = writeln!(io::stderr(), "ganger: {message}; aborting");
    std::process::abort()
}
