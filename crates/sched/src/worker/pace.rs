//! How many picks last for a span of time.
//!
//! A read of the clock costs as much as a short step. So a worker counts picks, and works out at
//! each read after how many picks the next read is worth its cost. Rotations, slices and polls of
//! timers have a [`Pace`] each.

use std::mem;

/// How many picks last for a span, measured over the last timed picks.
pub(super) struct Pace {
    span: u64,
    most: u32,
    /// Picks in the span: at least 1.
    pub(super) picks: u32,
    /// How long a pick lasts.
    pub(super) mean: u64,
    /// The time of the last measure.
    pub(super) at: u64,
}

impl Pace {
    /// Creates a pace that has `picks` before any measure, and later at most `most`.
    pub(super) fn new(span: u64, most: u32, picks: u32, at: u64) -> Self {
        Self {
            span,
            most,
            picks,
            mean: 0,
            at,
        }
    }

    /// Measures anew, after `count` picks since the last measure. Returns how long they lasted.
    pub(super) fn measure(&mut self, count: u32, now: u64) -> u64 {
        let elapsed = now.saturating_sub(mem::replace(&mut self.at, now));
        let picks = self.span.saturating_mul(count.into()) / elapsed.max(1);
        let picks = u32::try_from(picks).unwrap_or(u32::MAX);
        self.picks = picks.clamp(1, self.most);
        self.mean = elapsed / u64::from(count).max(1);
        elapsed
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    /// Returns the picks between two reads of the clock, when each pick lasts for `each`.
    fn picks(each: u64) -> u32 {
        let (mut pace, mut now) = (Pace::new(5_000, 256, 1, 0), 1_000_000);
        for _ in 0..10 {
            now += each * u64::from(pace.picks);
            pace.measure(pace.picks, now);
        }
        pace.picks
    }

    #[test]
    fn the_clock_is_read_as_often_as_steps_are_long() {
        assert_eq!([1_000_000, 5_000, 1_000, 1].map(picks), [1, 1, 5, 256]);
    }
}
