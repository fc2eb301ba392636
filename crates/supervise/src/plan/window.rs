//! The recent restarts of a supervisor.

use ganger_sched::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Counts the failures within a sliding window.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    most: u32,
    length: Duration,
    /// The last failures, in order: at most `most` + 1.
    failures: VecDeque<Instant>,
}

impl Window {
    pub(crate) fn new(most: u32, length: Duration) -> Self {
        let failures = VecDeque::new();
        Self {
            most,
            length,
            failures,
        }
    }

    /// Counts a failure. Returns whether a restart may follow. O(1), amortised.
    #[must_use]
    pub(crate) fn permits(&mut self, now: Instant) -> bool {
        while let Some(first) = self.failures.front()
            && (now.since(*first) > self.length || self.failures.len() > self.most as usize)
        {
            self.failures.pop_front();
        }
        self.failures.push_back(now);
        self.failures.len() <= self.most as usize
    }
}
