//! The threads that end what is queued where no worker does: when all workers are stuck, and after
//! the halt.
//!
//! **Problem.** A process ends by calling users' code, which may not return. So the thread that
//! queues a process after the halt does not end it, and neither does the supervisor, which looks
//! after all. A thread for each process would be too many.
//!
//! **Protocol.**
//! 1. A *thread that queues a process* after the halt makes a full fence, and looks whether one is
//!    queued. If so, it starts a reaper, unless there are [`MOST`] of them.
//! 2. A *reaper* ends what is queued until nothing is. It leaves, makes a full fence, and looks
//!    once more. If something is queued by then, it enters again.
//! 3. The *supervisor* looks now and then. It starts a reaper when something is queued and there is
//!    none, or when none of them has begun a turn for [`PATIENCE`] looks.
//!
//! **Why nothing is left.** A process is queued before the fence of 1, and a reaper leaves before
//! the fence of 2. So either the first thread sees that there is room for a reaper, or the reaper
//! that leaves sees the process.
//!
//! Where the system refuses a thread, the one that would have started it does its work.

use super::end_queued;
use crate::clock::Deadline;
use crate::contain::or_abort;
use crate::shared::Shared;
use crate::threads;
use ganger_sync::WaitableCount;
use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::Arc;
use std::thread;

/// How many reapers there are at the most.
const MOST: usize = 16;

/// After so many looks without a turn the supervisor takes the reapers for stuck.
const PATIENCE: u32 = 5;

/// How many reapers there are, and how far they have come.
pub(crate) struct ReaperPool {
    most: usize,
    /// Those that have entered and not left.
    threads: WaitableCount,
    /// The turns that they have begun, for the supervisor.
    turns: AtomicU64,
}

impl Default for ReaperPool {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl ReaperPool {
    /// For so many threads at the most.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            threads: WaitableCount::default(),
            turns: AtomicU64::new(0),
        }
    }

    /// How many reapers there are.
    pub(super) fn len(&self) -> usize {
        self.threads.get()
    }

    /// One more is to work, if there is room. The caller has made a full fence after it has queued
    /// something.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        self.threads.enter_below(self.most)
    }

    /// Calls `end_all` on a thread that has entered, until nothing is queued, or others have taken
    /// its place.
    pub(crate) fn work(&self, mut end_all: impl FnMut(), is_queued: impl Fn() -> bool) {
        loop {
            end_all();
            self.threads.leave();
            // Ordering: SeqCst pairs with the fence before `enter`.
            fence(Ordering::SeqCst);
            if !is_queued() || !self.enter() {
                return;
            }
        }
    }

    /// Notes that a turn begins.
    pub(super) fn count_turn(&self) {
        // Ordering: Relaxed: a supervisor that reads it late starts one reaper more.
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Blocks until at most `rest` reapers are left, or the deadline has passed. All else that was
    /// queued before has ended then.
    pub(super) fn wait(&self, rest: usize, deadline: Deadline) {
        self.threads.wait(|| rest, || deadline.remaining());
    }
}

/// What the supervisor has seen of the reapers.
#[derive(Default)]
pub(super) struct Supervisor {
    turns: u64,
    /// For how many looks there have been no more turns.
    looks: u32,
}

impl Supervisor {
    /// Starts a reaper if one is needed. `false` if one is, and there are as many as there may be.
    pub(super) fn supervise(&mut self, shared: &Arc<Shared>) -> bool {
        let reapers = &shared.stopper.reapers;
        let are_stuck = self.are_stuck(reapers);
        if !shared.has_work() {
            return true;
        }
        if reapers.threads.enter_below(1) {
            start_entered(shared);
            return true;
        }
        if !are_stuck {
            return true;
        }
        let has_room = reapers.enter();
        if has_room {
            self.looks = 0;
            start_entered(shared);
        }
        has_room
    }

    /// Whether no reaper has begun a turn for some looks.
    fn are_stuck(&mut self, reapers: &ReaperPool) -> bool {
        // Ordering: Relaxed, as in `count_turn`.
        let turns = reapers.turns.load(Ordering::Relaxed);
        if turns == self.turns {
            self.looks += 1;
        } else {
            (self.turns, self.looks) = (turns, 0);
        }
        self.looks >= PATIENCE
    }
}

/// Has what is queued after the halt ended. The caller has made a full fence.
pub(super) fn start(shared: &Arc<Shared>) {
    if shared.stopper.reapers.enter() {
        start_entered(shared);
    }
}

/// Starts the thread of a reaper that has entered.
fn start_entered(shared: &Arc<Shared>) {
    #[cfg(feature = "sim")]
    if crate::sim::is_driven() {
        // There is no other thread.
        return reap(shared);
    }
    let started = threads::spawn(threads::builder(shared, "reaper"), shared, reap);
    if started.is_err() {
        reap(shared);
    }
}

/// The work of a reaper that has entered.
fn reap(shared: &Arc<Shared>) {
    let is_queued = || {
        let is_queued = shared.has_work();
        if is_queued {
            // It may count already, and be pushed in a moment.
            thread::yield_now();
        }
        is_queued
    };
    let end_all = || or_abort(|| end_queued(shared));
    shared.stopper.reapers.work(end_all, is_queued);
}
