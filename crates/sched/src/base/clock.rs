//! Time, as the scheduler sees it. Only this file asks the machine.

use ganger_sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Tells how much time has passed since some fixed moment.
pub(crate) trait Clock {
    /// Returns the time since the clock's first moment; never goes back.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct MonotonicClock {
    origin: Instant,
    /// The machine is read, and no time passes.
    is_still: bool,
}

impl MonotonicClock {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
            is_still: false,
        }
    }

    /// Makes a clock without passing time, for a count of instructions, under which each step lasts
    /// long.
    pub(crate) fn still() -> Self {
        Self {
            is_still: true,
            ..Self::new()
        }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        let now = self.origin.elapsed();
        if self.is_still {
            return Duration::ZERO;
        }
        now
    }
}

/// The time of the last reading by the monitor, or by a worker after its sleep. Costs a load, and
/// stands still while nothing waits.
pub(crate) struct CoarseTime {
    nanos: AtomicU64,
    clock: MonotonicClock,
}

impl CoarseTime {
    /// Makes a coarse time of the clock, not read yet.
    pub(crate) fn of(clock: MonotonicClock) -> Self {
        Self {
            nanos: AtomicU64::default(),
            clock,
        }
    }

    /// Returns the time in nanoseconds since some fixed moment.
    pub(crate) fn nanos(&self) -> u64 {
        // Ordering: Relaxed: no other read depends on it.
        self.nanos.load(Ordering::Relaxed)
    }

    /// Moves the time on to `now`, and never back: the monitor, or a worker that wakes, may be late
    /// with its reading of the clock.
    pub(crate) fn go_on(&self, now: Duration) {
        // Ordering: Relaxed: no other read depends on it.
        self.nanos.fetch_max(nanos(now), Ordering::Relaxed);
    }

    /// Returns the time of the clock, since the same moment. Costs as much as a short step.
    pub(crate) fn read(&self) -> Duration {
        self.clock.now()
    }

    /// Returns the clock.
    pub(crate) fn clock(&self) -> MonotonicClock {
        self.clock
    }
}

/// Returns a duration in nanoseconds, up to some centuries.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A moment in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since {
    start: Instant,
    more: Duration,
}

impl Since {
    /// Makes a moment this long ago.
    pub(crate) fn before(more: Duration) -> Self {
        Self {
            start: Instant::now(),
            more,
        }
    }

    /// Returns how long ago the moment is now.
    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed().saturating_add(self.more)
    }
}

/// A moment until which a thread waits.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    start: Instant,
    length: Duration,
}

impl Deadline {
    /// Makes the deadline this long from now on.
    pub(crate) fn after(length: Duration) -> Self {
        Self {
            start: Instant::now(),
            length,
        }
    }

    /// Returns a deadline this much later.
    pub(crate) fn plus(self, more: Duration) -> Self {
        Self {
            length: self.length.saturating_add(more),
            ..self
        }
    }

    /// Returns the earlier deadline.
    pub(crate) fn earlier(self, other: Self) -> Self {
        if other.remaining() < self.remaining() {
            other
        } else {
            self
        }
    }

    /// Returns how long it is until the deadline; zero when the deadline has passed.
    pub(crate) fn remaining(self) -> Duration {
        self.length.saturating_sub(self.start.elapsed())
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_late_reading_does_not_take_the_coarse_time_back() {
        let time = CoarseTime::of(MonotonicClock::new());
        for reading in [5, 3] {
            time.go_on(Duration::from_nanos(reading));
        }
        assert_eq!(time.nanos(), 5);
    }
}
