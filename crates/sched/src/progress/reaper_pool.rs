//! How many reapers there are: threads that end what is queued where no worker does. The folder
//! `stop` has their protocol.

use crate::base::clock::Deadline;
use ganger_sync::WaitableCount;
use ganger_sync::atomic::{AtomicU64, Ordering, fence};

/// How many reapers there are at the most.
const MOST: usize = 16;

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
    pub(crate) fn len(&self) -> usize {
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

    /// The first one is to work, if there is none.
    #[must_use]
    pub(crate) fn enter_first(&self) -> bool {
        self.threads.enter_below(1)
    }

    /// How many turns the reapers have begun.
    pub(crate) fn turns(&self) -> u64 {
        // Ordering: Relaxed, for the reason in `count_turn`.
        self.turns.load(Ordering::Relaxed)
    }

    /// Notes that a turn begins.
    pub(crate) fn count_turn(&self) {
        // Ordering: Relaxed: a supervisor that reads it late starts one reaper more.
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Blocks until at most `rest` reapers are left, or the deadline has passed. All else that was
    /// queued before has ended then.
    pub(crate) fn wait(&self, rest: usize, deadline: Deadline) {
        self.threads.wait(|| rest, || deadline.remaining());
    }
}
