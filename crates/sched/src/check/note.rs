//! Since when a process waits, as noted when it is queued.
//!
//! **Problem.** The pusher to the global queue may be off its processor between the note and the
//! push, for as long as the system likes. Workers continue with others meanwhile, and nothing is
//! promised yet: no worker can pick a missing process. **Rejected.** To note it after the push: a
//! worker may have picked the process by then, and it is gone.
//!
//! **Protocol.** Each push has a note of its own, shared by the process and its pusher. The picks
//! are noted once the push is over. A worker counts no picks when it takes the process earlier.

use super::Checker;
use super::trail::Queued;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) struct Note {
    /// The number of processes in front at the push.
    pub(super) before: u64,
    /// The worker in whose deque it was put; none for the global queue.
    by: Option<usize>,
    /// How many picks each worker had made when the push was over.
    picks: Box<[AtomicU64]>,
    is_over: AtomicBool,
}

impl Note {
    /// Makes the note of a push that is about to begin: to the worker's deque, or to the global
    /// queue.
    pub(super) fn new(by: Option<usize>, before: usize, checker: &Checker) -> Self {
        Self {
            before: before as u64,
            by,
            picks: checker.slots.iter().map(|_| AtomicU64::new(0)).collect(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Notes the end of the push.
    pub(super) fn settle(&self, checker: &Checker) {
        for (noted, slot) in self.picks.iter().zip(&checker.slots) {
            // Ordering: Relaxed: counts of others, and `is_over` hands the stored values over.
            noted.store(slot.picks.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Ordering: Release pairs with the Acquire in `queued`.
        self.is_over.store(true, Ordering::Release);
    }

    /// Returns since when the process waits; nothing before its push is over.
    pub(super) fn queued(&self) -> Option<Queued<'_>> {
        // Ordering: Acquire pairs with the Release in `settle`.
        let is_over = self.is_over.load(Ordering::Acquire);
        is_over.then_some(Queued {
            by: self.by,
            picks: &self.picks,
        })
    }
}
