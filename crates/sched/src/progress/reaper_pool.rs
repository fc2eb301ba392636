//! The count of reapers: threads that end queued processes where no worker does. The folder `stop`
//! has their protocol.

use crate::base::clock::Deadline;
use ganger_sync::WaitableCount;
use ganger_sync::atomic::{AtomicU64, Ordering, fence};

/// The most reapers at a time.
const MOST: usize = 16;

/// The number of reapers, and their progress.
pub(crate) struct ReaperPool {
    most: usize,
    /// Reapers entered and not left.
    threads: WaitableCount,
    /// The turns begun by them, for the supervisor.
    turns: AtomicU64,
}

impl Default for ReaperPool {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl ReaperPool {
    /// Creates a pool of at most `most` threads.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            threads: WaitableCount::default(),
            turns: AtomicU64::new(0),
        }
    }

    /// Returns the number of reapers.
    pub(crate) fn len(&self) -> usize {
        self.threads.get()
    }

    /// Enters another reaper, if the pool has room. The caller has queued a process and made a full
    /// fence.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        self.threads.enter_below(self.most)
    }

    /// Calls `end_all` on an entered thread, until the queues are empty, or others have taken its
    /// place.
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

    /// Enters the first reaper, if the pool has none.
    #[must_use]
    pub(crate) fn enter_first(&self) -> bool {
        self.threads.enter_below(1)
    }

    /// Returns the number of turns that the reapers have begun.
    pub(crate) fn turns(&self) -> u64 {
        // Ordering: Relaxed, for the reason in `count_turn`.
        self.turns.load(Ordering::Relaxed)
    }

    /// Notes the begin of a turn.
    pub(crate) fn count_turn(&self) {
        // Ordering: Relaxed: a supervisor that reads it late starts a reaper too many.
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Blocks until at most `rest` reapers are left, or the deadline has passed. All other
    /// processes queued before have ended then.
    pub(crate) fn wait(&self, rest: usize, deadline: Deadline) {
        self.threads.wait(|| rest, || deadline.remaining());
    }
}
