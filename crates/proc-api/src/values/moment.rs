//! Points in time, by the clock of a scheduler.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment by the clock of a scheduler: nanoseconds since the scheduler was built.
///
/// The clock is the machine's monotonic clock, or a simulation's. Sums and differences saturate: a
/// moment later than the last is [`NEVER`](Self::NEVER), and no moment is before the first. So `-`
/// does not panic.
///
/// ```
/// use ganger_proc_api::Instant;
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
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the moment `nanos` nanoseconds after the scheduler was built.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the time since the scheduler was built, in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the moment later by `time`.
    #[must_use]
    #[inline]
    pub fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(nanos(time)))
    }

    /// Returns the time from `earlier` to this moment; zero if this moment comes first.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The moment `time` later: [`after`](Instant::after).
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, time: Duration) -> Self {
        self.after(time)
    }
}

/// The moment `time` earlier, or the first moment if the result would be before it.
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

/// Returns a duration in nanoseconds, up to some centuries.
#[inline]
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
