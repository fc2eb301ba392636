//! Time, as the scheduler sees it. Only this file asks the machine.

use ganger_sync::atomic::{AtomicU64, Ordering};
use std::ops::{Add, Sub};
use std::time::Duration;

/// Tells how much time has passed since some fixed moment.
pub(crate) trait Clock {
    /// Time since that moment; never goes back.
    fn now(&self) -> Duration;
}

/// A moment, by the clock of one scheduler: in nanoseconds since that was built.
///
/// It is of the machine's monotonic clock, or of a simulation's. Sums and differences saturate:
/// what is later than the last moment is [`NEVER`](Self::NEVER), and nothing is before the first.
/// So `-` does not panic.
///
/// ```
/// use ganger_sched::Instant;
/// use std::time::Duration;
///
/// let now = Instant::from_nanos(500);
/// let later = now + Duration::from_nanos(70); // The same as `now.after(..)`.
/// assert_eq!((later.as_nanos(), later - now), (570, Duration::from_nanos(70)));
/// assert_eq!((later.since(now), later - Duration::from_nanos(70)), (later - now, now));
/// assert_eq!((now - later, now + Duration::MAX), (Duration::ZERO, Instant::NEVER));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The moment that does not come.
    pub const NEVER: Self = Self(u64::MAX);

    /// So many nanoseconds after the scheduler was built.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// How many nanoseconds it is after the scheduler was built.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// That much later.
    #[must_use]
    #[inline]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }

    /// How much later it is than another moment; zero if it is earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// That much later: [`after`](Instant::after).
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, time: Duration) -> Self {
        self.after(time)
    }
}

/// That much earlier, or the first moment if that is too early.
impl Sub<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(time)))
    }
}

/// How much later it is: [`since`](Instant::since).
impl Sub for Instant {
    type Output = Duration;

    #[inline]
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// The machine's monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct MonotonicClock {
    origin: std::time::Instant,
}

impl MonotonicClock {
    pub(crate) fn new() -> Self {
        Self {
            origin: std::time::Instant::now(),
        }
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// The time as the monitor, or a worker that has woken, has read it last. Costs a load, and stands
/// still while nothing waits.
pub(crate) struct CoarseTime {
    nanos: AtomicU64,
    clock: MonotonicClock,
}

impl Default for CoarseTime {
    fn default() -> Self {
        Self {
            nanos: AtomicU64::default(),
            clock: MonotonicClock::new(),
        }
    }
}

impl CoarseTime {
    /// In nanoseconds since some fixed moment.
    #[inline]
    pub(crate) fn nanos(&self) -> u64 {
        // Ordering: Relaxed: no other read depends on it.
        self.nanos.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, now: Duration) {
        // Ordering: Relaxed: no other read depends on it.
        self.nanos.store(nanos(now), Ordering::Relaxed);
    }

    /// A worker has been asleep, and perhaps the monitor has, too.
    pub(crate) fn go_on(&self, now: Duration) {
        // Ordering: Relaxed: no other read depends on it.
        self.nanos.fetch_max(nanos(now), Ordering::Relaxed);
    }

    /// The time of the clock, since the same moment. Costs as much as a short step.
    pub(crate) fn read(&self) -> Duration {
        self.clock.now()
    }

    /// The clock.
    pub(crate) fn clock(&self) -> MonotonicClock {
        self.clock
    }
}

/// A duration in nanoseconds, up to some centuries.
#[inline]
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A moment in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Since {
    start: std::time::Instant,
    more: Duration,
}

impl Since {
    /// That long ago.
    pub(crate) fn before(more: Duration) -> Self {
        Self {
            start: std::time::Instant::now(),
            more,
        }
    }

    /// How long ago it is now.
    pub(crate) fn elapsed(self) -> Duration {
        self.start.elapsed().saturating_add(self.more)
    }
}

/// A moment until which a thread waits.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    start: std::time::Instant,
    length: Duration,
}

impl Deadline {
    /// That long from now on.
    #[inline]
    pub(crate) fn after(length: Duration) -> Self {
        Self {
            start: std::time::Instant::now(),
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
