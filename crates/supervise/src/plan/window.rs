//! How many restarts there were of late.

use ganger_sched::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Counts the failures of the last while: more than so many are too many.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    most: u32,
    length: Duration,
    /// The last failures, in order: at most one more than may be.
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

    /// Counts a failure at that moment. Says whether a restart may follow. O(1), amortised.
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
