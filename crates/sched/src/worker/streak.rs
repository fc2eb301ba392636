//! How long a worker picks from the lane of arrivals before it picks another process.

use crate::policy::{ARRIVALS_SPAN, ARRIVALS_STREAK};

/// Picks from the lane of arrivals since the last pick from elsewhere.
#[derive(Debug, Default)]
pub(super) struct Streak {
    picks: u32,
    since: u64,
    others: u64,
}

impl Streak {
    /// Counts a pick, after `others` picks from elsewhere. Returns whether it may be from the lane.
    pub(super) fn goes_on(&mut self, others: u64, now: u64) -> bool {
        if others != self.others {
            (self.picks, self.since, self.others) = (0, now, others);
        }
        self.picks += 1;
        self.picks <= ARRIVALS_STREAK && now.saturating_sub(self.since) < ARRIVALS_SPAN
    }

    /// Begins a new streak with the next pick, as nothing is queued elsewhere.
    pub(super) fn begin_again(&mut self, now: u64) {
        (self.picks, self.since) = (1, now);
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    // pins: G4
    #[test]
    fn arrivals_come_so_often_or_for_so_long_before_another_one() {
        let mut streak = Streak::default();
        let mut goes_on = |others, now| streak.goes_on(others, now);
        assert!((0..ARRIVALS_STREAK).all(|_| goes_on(1, 70)));
        assert!(!goes_on(1, 70) && !goes_on(1, 70));
        assert!(goes_on(2, 80) && goes_on(2, 80 + ARRIVALS_SPAN - 1));
        assert!(!goes_on(2, 80 + ARRIVALS_SPAN));
        assert!(goes_on(3, 80 + ARRIVALS_SPAN));
    }

    // pins: G4
    #[test]
    fn arrivals_alone_are_picked_in_a_row_again_after_a_look_elsewhere() {
        let mut streak = Streak::default();
        for _ in 0..3 {
            // The first pick of a new row is the pick after the look.
            assert!((1..ARRIVALS_STREAK).all(|_| streak.goes_on(1, 70)));
            streak.goes_on(1, 70);
            assert!(!streak.goes_on(1, 70));
            streak.begin_again(70);
        }
        assert!(!streak.goes_on(1, 70 + ARRIVALS_SPAN));
        streak.begin_again(80 + ARRIVALS_SPAN);
        assert!(streak.goes_on(1, 80 + ARRIVALS_SPAN));
    }
}
