//! Values of crates above the scheduler, kept for each scheduler, a single value of each type.

use crate::base::contain::contain_and_report;
use crate::base::stats::Counters;
use ganger_sync::sync::{Mutex, lock};
use std::any::Any;
use std::sync::Arc;

/// A call to make when the scheduler has halted.
type AtHalt = Box<dyn FnOnce() + Send>;

pub(crate) struct Extensions {
    /// Few, and looked for by their types.
    values: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
    /// `None` when they have been called.
    at_halt: Mutex<Option<Vec<AtHalt>>>,
}

impl Default for Extensions {
    fn default() -> Self {
        Self {
            values: Mutex::default(),
            at_halt: Mutex::new(Some(Vec::new())),
        }
    }
}

impl Extensions {
    /// Returns the value of type `T`. `make` makes it at the first call; two concurrent calls may
    /// both call `make`, and the first value stays. O(extensions).
    pub(crate) fn get<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(found) = self.find() {
            return found;
        }
        // Without the lock: it is another's code.
        let made = Arc::new(make());
        let mut all = lock(&self.values);
        let found = all.iter().find_map(|it| Arc::clone(it).downcast().ok());
        found.unwrap_or_else(|| {
            all.push(Arc::clone(&made) as _);
            made
        })
    }

    /// Returns the value of type `T`, if it has been made. O(extensions).
    pub(crate) fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        lock(&self.values)
            .iter()
            .find_map(|it| Arc::clone(it).downcast().ok())
    }

    /// Has `call` called by [`halt`](Self::halt), or at once after it.
    pub(crate) fn at_halt(&self, call: AtHalt) {
        let mut calls = lock(&self.at_halt);
        if let Some(calls) = &mut *calls {
            return calls.push(call);
        }
        drop(calls);
        call();
    }

    /// Makes the calls of `at_halt`, when a worker has returned for good, or none will ever run.
    pub(crate) fn halt(&self, counters: &Counters) {
        let calls = lock(&self.at_halt).take();
        for call in calls.into_iter().flatten() {
            contain_and_report("end of an extension", None, counters, call);
        }
    }
}
