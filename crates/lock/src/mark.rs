//! What an owner leaves that has failed while it had a lock.

use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::failing::is_failing;
use std::thread::{self, ThreadId};

/// Whether an owner of the lock has failed. Owners write it while they have the lock.
#[derive(Debug)]
pub(crate) struct Mark(AtomicBool);

impl Mark {
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        // Ordering: Relaxed, because the lock orders it for owners. Others look at some moment.
        self.0.load(Ordering::Relaxed)
    }

    #[cold]
    fn set(&self) {
        // Ordering: Relaxed, because the lock orders it.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        // Ordering: Relaxed, as above.
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The thread that was failing already when it got the lock: an owner that this thread unlocks for
/// has not failed by that.
#[derive(Debug)]
pub(crate) struct MarkedBy {
    was_failing: Option<ThreadId>,
}

impl MarkedBy {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            was_failing: is_failing().then(|| thread::current().id()),
        }
    }

    /// The owner unlocks: marks the lock if it does so because it fails.
    #[inline]
    pub(crate) fn set(&self, mark: &Mark) {
        if is_failing() && self.was_failing != Some(thread::current().id()) {
            mark.set();
        }
    }
}
