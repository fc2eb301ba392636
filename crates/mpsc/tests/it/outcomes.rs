//! The outcomes of a model. A model without an outcome proves nothing about this outcome.
//!
//! Loom tries races with the latest access to a location only. A thread that reads and then swaps
//! hides an earlier read by another thread: loom does not try the swap before this read. Hence two
//! habits in these models. A thread that begins with a read yields first, so that the other threads
//! go first by default. And the outcomes are collected.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The outcomes of the runs of a model.
pub(crate) struct Outcomes<T> {
    seen: Arc<Mutex<BTreeSet<T>>>,
    begun: Instant,
}

impl<T> Clone for Outcomes<T> {
    fn clone(&self) -> Self {
        Self {
            seen: Arc::clone(&self.seen),
            begun: self.begun,
        }
    }
}

impl<T: Ord + Debug> Outcomes<T> {
    pub(crate) fn new() -> Self {
        Self {
            seen: Arc::default(),
            begun: Instant::now(),
        }
    }

    /// Records the outcome of a run.
    pub(crate) fn note(&self, outcome: T) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(outcome);
    }

    /// Panics unless the runs reached all outcomes in `all`, and no other. Runs may miss some
    /// outside of loom, and when loom has stopped at its time limit.
    pub(crate) fn check(self, all: impl IntoIterator<Item = T>) {
        let all = all.into_iter().collect();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if cfg!(ganger_loom) && !self.is_cut() {
            assert_eq!(*seen, all, "seen, and what there is to see");
        } else {
            assert!(seen.is_subset(&all), "seen {seen:?}, of {all:?}");
        }
    }
    /// Returns whether the runs have lasted as long as loom's time limit.
    fn is_cut(&self) -> bool {
        let limit = std::env::var("LOOM_MAX_DURATION").ok();
        let seconds = limit.and_then(|limit| limit.parse().ok());
        seconds.is_some_and(|seconds| self.begun.elapsed() >= Duration::from_secs(seconds))
    }
}
