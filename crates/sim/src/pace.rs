//! The clock of a machine, which may go slower or faster than the clock of the simulation.

use std::time::Duration;

/// Parts of a second, for the rate of a clock.
const PARTS: u64 = 1_000_000;

/// How a machine's clock goes: at `since` by the clock of the simulation it showed `shown`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    since: Duration,
    shown: Duration,
    /// In millionths.
    rate: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            since: Duration::ZERO,
            shown: Duration::ZERO,
            rate: PARTS,
        }
    }
}

impl Pace {
    /// Changes the rate of the clock from now on, without a jump.
    ///
    /// # Panics
    /// When the rate is not between a hundredth and a hundred.
    #[track_caller]
    pub(crate) fn from(self, now: Duration, rate: f64) -> Self {
        assert!(
            (0.01..=100.0).contains(&rate),
            "the rate of a clock must be between 0.01 and 100, not {rate}"
        );
        let rate = (rate * 1e6).round();
        Self {
            since: now,
            shown: self.shows(now),
            // Within the bounds above.
            rate: Duration::from_secs_f64(rate).as_secs(),
        }
    }

    /// Returns the time on the machine's clock at this moment of the simulation.
    pub(crate) fn shows(self, now: Duration) -> Duration {
        let passed = now.saturating_sub(self.since);
        self.shown
            .saturating_add(scaled(passed, self.rate, PARTS, false))
    }

    /// Returns the moment of the simulation at which the machine's clock shows `at`, or first shows
    /// more.
    pub(crate) fn reaches(self, at: Duration) -> Duration {
        let left = at.saturating_sub(self.shown);
        self.since
            .saturating_add(scaled(left, PARTS, self.rate, true))
    }
}

fn scaled(time: Duration, times: u64, parts: u64, up: bool) -> Duration {
    if times == parts {
        return time;
    }
    let product = time.as_nanos().saturating_mul(u128::from(times));
    let parts = u128::from(parts);
    let nanos = match up {
        true => product.div_ceil(parts),
        false => product / parts,
    };
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_was_waited_for_and_does_not_jump() {
        let now = Duration::from_secs(10);
        let slow = Pace::default().from(now, 0.9);
        assert_eq!(slow.shows(now), now);
        let later = now + Duration::from_secs(10);
        assert_eq!(slow.shows(later), Duration::from_secs(19));
        let fast = slow.from(later, 1.7);
        for pace in [slow, fast] {
            for nanos in 0..1_000 {
                let at = Duration::from_secs(30) + Duration::from_nanos(nanos);
                let reached = pace.reaches(at);
                assert!(pace.shows(reached) >= at);
                assert!(pace.shows(reached - Duration::from_nanos(1)) < at);
            }
        }
    }
}
