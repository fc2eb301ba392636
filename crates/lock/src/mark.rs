//! The mark of a failed owner on its lock.

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
        // Ordering: Relaxed, because the lock orders it for owners. Other readers see the mark of
        // some moment.
        self.0.load(Ordering::Relaxed)
    }

    #[cold]
    fn set(&self) {
        // Ordering: Relaxed, because the lock orders it.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        // Ordering: Relaxed, because the mark publishes nothing: the lock orders the value.
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The thread, if it was already failing when the owner got the lock. An unlock by this thread sets
/// no mark, because the owner itself has not failed.
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

    /// Marks the lock if its owner unlocks because the owner fails.
    #[inline]
    pub(crate) fn set(&self, mark: &Mark) {
        if is_failing() && self.was_failing != Some(thread::current().id()) {
            mark.set();
        }
    }
}
