//! The outcomes of a model. A model that never comes to one of them proves nothing about it.
//!
//! Loom looks for a race with the latest access to a location only. A thread that reads and then
//! swaps hides an earlier read by another thread: the order "swap, then that read" is not tried.
//! Hence two habits in these models. A thread that begins with a read yields first, so that the
//! others go before it by default. And the outcomes are collected.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// The outcomes of the runs of a model.
pub(crate) struct Outcomes<T>(Arc<Mutex<BTreeSet<T>>>);

impl<T> Clone for Outcomes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Ord + Debug> Outcomes<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Notes the outcome of a run.
    pub(crate) fn note(&self, outcome: T) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(outcome);
    }

    /// Panics unless the runs came to `all` of these, and to nothing else. Outside of loom, runs
    /// may miss some.
    pub(crate) fn check(self, all: impl IntoIterator<Item = T>) {
        let all = all.into_iter().collect();
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cfg!(loom) {
            assert_eq!(*seen, all, "seen, and what there is to see");
        } else {
            assert!(seen.is_subset(&all), "seen {seen:?}, of {all:?}");
        }
    }
}
