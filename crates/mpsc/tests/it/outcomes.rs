//! Which outcomes a model has come to: a model that never sees one of them proves nothing about it.
//!
//! Loom looks for a race only with the latest access to a location, so a thread that reads first
//! and then swaps hides an earlier read by another one: the order "swap, then that read" would
//! never be tried. Hence two habits in these models: a thread that begins with a read yields
//! first, so that the others go before it by default; and the outcomes are counted.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// What the runs of a model came to.
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

    /// One run of the model came to this.
    pub(crate) fn note(&self, outcome: T) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(outcome);
    }

    /// Panics unless the runs came to `all` of these (under loom; a stress loop may miss some), and
    /// to nothing else.
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
