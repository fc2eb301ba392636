//! How long nothing has moved, and how long a round goes on, as regular looks at the clock and at
//! counts tell.
//!
//! **Problem.** A suspended machine, or a stopped program, makes no progress and is not to blame.
//! But when it goes on, the clock has moved.
//!
//! **Rule.** Looks come at short intervals. When two looks are much further apart, the watcher was
//! stopped as well, and perhaps the whole program. Such a gap counts as little more than a late
//! look. When the watcher alone goes on, looks go on, and their time adds up.
//!
//! **Rejected.** Asking the system whether it slept: a program that a signal stops, or a stopped
//! virtual machine, sees nothing of the stop.

use std::time::{Duration, Instant};

/// The most time between two looks.
const INTERVAL: Duration = Duration::from_millis(250);

/// A longer gap between two looks counts as this.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For how long nothing may move.
    pub(crate) patience: Duration,
    /// How long a round may take.
    pub(crate) round: Duration,
}

impl Limits {
    /// Returns the time until the next look.
    pub(crate) fn interval(self) -> Duration {
        INTERVAL.min(self.patience / 10)
    }

    /// Returns the most that a gap between two looks counts, so that a single gap passes no limit.
    fn longest_look(self) -> Duration {
        LONGEST_LOOK.min(self.patience.min(self.round) / 2)
    }
}

/// The passed limit, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Verdict {
    /// None.
    GoesOn,
    /// Nothing has moved.
    Stands(Duration),
    /// The round does not end.
    Lasts(Duration),
}

/// The results of the looks.
#[derive(Debug)]
pub(crate) struct Patience {
    limits: Limits,
    last: Instant,
    /// The number of begun rounds, and a number that changes whenever something moves.
    seen: (u64, u64),
    still: Duration,
    lasts: Duration,
}

impl Patience {
    /// Makes the first look.
    pub(crate) fn new(limits: Limits, now: Instant, progress: (u64, u64)) -> Self {
        Self {
            limits,
            last: now,
            seen: progress,
            still: Duration::ZERO,
            lasts: Duration::ZERO,
        }
    }

    /// Makes the next look.
    pub(crate) fn look(&mut self, now: Instant, progress: (u64, u64)) -> Verdict {
        let passed = now.saturating_duration_since(self.last);
        let passed = passed.min(self.limits.longest_look());
        self.last = now;
        self.still += passed;
        self.lasts += passed;
        if progress.0 != self.seen.0 {
            self.lasts = Duration::ZERO;
        }
        if progress != self.seen {
            self.still = Duration::ZERO;
        }
        self.seen = progress;
        if self.still >= self.limits.patience {
            Verdict::Stands(self.still)
        } else if self.lasts >= self.limits.round {
            Verdict::Lasts(self.lasts)
        } else {
            Verdict::GoesOn
        }
    }

    /// Returns for how long nothing has moved.
    pub(crate) fn still(&self) -> Duration {
        self.still
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        patience: Duration::from_secs(30),
        round: Duration::from_secs(600),
    };
    const HOUR: Duration = Duration::from_secs(3_600);

    /// A clock that the test sets, and a watcher that looks at the clock.
    struct Bench {
        now: Instant,
        patience: Patience,
    }

    impl Bench {
        fn new(limits: Limits) -> Self {
            let now = Instant::now();
            let patience = Patience::new(limits, now, (1, 0));
            Self { now, patience }
        }

        /// Looks once, `time` later.
        fn after(&mut self, time: Duration, progress: (u64, u64)) -> Verdict {
            self.now += time;
            self.patience.look(self.now, progress)
        }

        /// Looks at the usual intervals until a limit is exactly passed.
        fn until_a_limit(&mut self, mut progress: impl FnMut() -> (u64, u64)) -> Verdict {
            let interval = self.patience.limits.interval();
            loop {
                match self.after(interval, progress()) {
                    Verdict::GoesOn => {}
                    verdict => return verdict,
                }
            }
        }
    }

    #[test]
    fn where_nothing_moves_the_time_adds_up_to_the_limit() {
        let mut bench = Bench::new(LIMITS);
        let begun = bench.now;
        let verdict = bench.until_a_limit(|| (1, 0));
        assert_eq!(verdict, Verdict::Stands(LIMITS.patience));
        assert_eq!(bench.now - begun, LIMITS.patience);
    }

    #[test]
    fn whatever_moves_begins_the_time_again() {
        let mut bench = Bench::new(LIMITS);
        let almost = LIMITS.patience - LIMITS.interval();
        for moves in 1..=5 {
            assert_eq!(bench.after(LIMITS.interval(), (1, moves)), Verdict::GoesOn);
            assert_eq!(bench.patience.still(), Duration::ZERO);
            while bench.patience.still() < almost {
                assert_eq!(bench.after(LIMITS.interval(), (1, moves)), Verdict::GoesOn);
            }
        }
        let verdict = bench.after(LIMITS.interval(), (1, 5));
        assert_eq!(verdict, Verdict::Stands(LIMITS.patience));
    }

    #[test]
    fn a_round_that_moves_and_does_not_end_is_found_and_the_next_begins_again() {
        let mut bench = Bench::new(LIMITS);
        let mut moves = 0;
        let mut busy = |round| {
            moves += 1;
            (round, moves)
        };
        while bench.patience.lasts < LIMITS.round - LIMITS.interval() {
            assert_eq!(bench.after(LIMITS.interval(), busy(1)), Verdict::GoesOn);
        }
        assert_eq!(bench.after(LIMITS.interval(), busy(2)), Verdict::GoesOn);
        let begun = bench.now;
        let verdict = bench.until_a_limit(|| busy(2));
        assert_eq!(verdict, Verdict::Lasts(LIMITS.round));
        assert_eq!(bench.now - begun, LIMITS.round);
    }

    #[test]
    fn a_machine_that_was_suspended_is_not_to_blame() {
        for limits in [
            LIMITS,
            Limits {
                patience: Duration::from_millis(500),
                ..LIMITS
            },
            Limits {
                round: Duration::from_millis(1_500),
                ..LIMITS
            },
        ] {
            let mut bench = Bench::new(limits);
            assert_eq!(bench.after(limits.interval(), (1, 0)), Verdict::GoesOn);
            assert_eq!(bench.after(24 * HOUR, (1, 0)), Verdict::GoesOn);
            assert!(bench.patience.still() <= limits.interval() + LONGEST_LOOK);
            assert_eq!(bench.after(limits.interval(), (1, 1)), Verdict::GoesOn);
            assert_eq!(bench.patience.still(), Duration::ZERO);
        }
    }

    #[test]
    fn a_program_that_is_stopped_now_and_then_is_not_to_blame() {
        let mut bench = Bench::new(LIMITS);
        for moves in 0..1_000 {
            assert_eq!(bench.after(HOUR, (moves / 10, moves / 10)), Verdict::GoesOn);
            assert_eq!(
                bench.after(LIMITS.interval(), (moves / 10, moves)),
                Verdict::GoesOn
            );
        }
    }

    /// Checks that a hang from before the machine's suspension is found afterwards.
    #[test]
    fn a_suspension_does_not_hide_a_hang() {
        let mut bench = Bench::new(LIMITS);
        for _ in 0..40 {
            assert_eq!(bench.after(LIMITS.interval(), (1, 0)), Verdict::GoesOn);
        }
        let still = bench.patience.still();
        assert_eq!(bench.after(HOUR, (1, 0)), Verdict::GoesOn);
        assert!(bench.patience.still() >= still);
        let resumed = bench.now;
        let verdict = bench.until_a_limit(|| (1, 0));
        assert_eq!(verdict, Verdict::Stands(LIMITS.patience));
        assert!(bench.now - resumed <= LIMITS.patience - still);
    }

    /// Checks that late looks, on a busy machine, count in full.
    #[test]
    fn a_look_that_is_somewhat_late_counts_in_full() {
        let mut bench = Bench::new(LIMITS);
        for _ in 0..29 {
            assert_eq!(bench.after(LONGEST_LOOK, (1, 0)), Verdict::GoesOn);
        }
        let verdict = bench.after(LONGEST_LOOK, (1, 0));
        assert_eq!(verdict, Verdict::Stands(LIMITS.patience));
    }
}
