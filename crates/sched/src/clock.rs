//! Time, as the scheduler sees it: the one place that asks the machine.

use std::time::{Duration, Instant};

/// Tells how much time has passed since some fixed moment.
pub(crate) trait Clock {
    /// Time since that moment; never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock.
pub(crate) struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A moment in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since {
    start: Instant,
    more: Duration,
}

impl Since {
    /// That long ago.
    pub(crate) fn before(more: Duration) -> Self {
        Self {
            start: Instant::now(),
            more,
        }
    }

    /// How long ago it is now.
    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed().saturating_add(self.more)
    }
}

/// A moment until which somebody waits.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    length: Duration,
}

impl Deadline {
    /// That long from now on.
    pub(crate) fn after(length: Duration) -> Self {
        Self {
            start: Instant::now(),
            length,
        }
    }

    /// That much later.
    pub(crate) fn plus(self, more: Duration) -> Self {
        Self {
            length: self.length.saturating_add(more),
            ..self
        }
    }

    /// The one of the two that comes first.
    pub(crate) fn earlier(self, other: Self) -> Self {
        if other.remaining() < self.remaining() {
            other
        } else {
            self
        }
    }

    /// How long it is until then; zero when it has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.length.saturating_sub(self.start.elapsed())
    }
}
