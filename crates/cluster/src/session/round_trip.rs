//! The measured round trip, and the time-out derived from it (RFC 6298).

use std::time::Duration;

/// A smoothed round trip and its variation. A repeated message gives no sample, since
/// its acknowledgement may be of either.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, measured: Duration) {
        match &mut self.smoothed {
            Some(smoothed) => {
                let difference = smoothed.abs_diff(measured);
                self.variation = (self.variation * 3 + difference) / 4;
                *smoothed = (*smoothed * 7 + measured) / 8;
            }
            None => {
                self.smoothed = Some(measured);
                self.variation = measured / 2;
            }
        }
    }

    /// Returns the smoothed round trip, once there was a sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Returns the time after which a frame counts as lost.
    pub(super) fn timeout(&self, first: Duration, least: Duration) -> Duration {
        let measured = self.smoothed.map(|it| it + 4 * self.variation);
        measured.unwrap_or(first).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trip_and_has_a_least() {
        let ms = Duration::from_millis;
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout(ms(100), ms(20)), ms(100));
        trip.sample(ms(40));
        assert_eq!(trip.timeout(ms(100), ms(20)), ms(120));
        for _ in 0..100 {
            trip.sample(ms(2));
        }
        assert_eq!(trip.timeout(ms(100), ms(20)), ms(20));
        trip.sample(ms(400));
        assert!(trip.timeout(ms(100), ms(20)) > ms(400));
    }
}
