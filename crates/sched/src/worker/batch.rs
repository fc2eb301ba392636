//! How long a worker keeps the ready processes of the driver to itself.
//!
//! **Problem.** Sockets become ready a few at a time. A wake-up of another worker costs more than
//! their steps, and the two then take turns in the driver: each goes to sleep and is woken again
//! after a few events.
//!
//! **Rejected.** To wake another worker for the second event. This file buys, on two processors
//! with 64 connections: 1.3 requests in place of one with hyper, in 0.9 of the processor time and
//! with a third of the 99th percentile; 1.3 requests with echo. To keep all ready processes: a long
//! step would hold up the others. A single span: of 100 us it has two workers take turns as soon as
//! 20 connections are ready; of 500 us it holds up turns worth a wake-up each.
//!
//! **Protocol.** A worker measures its turns between two visits. The worker *keeps* the ready
//! processes if by this measure all are over in [`KEPT_SPAN`], or in [`KEPT_LONG`] where a turn
//! takes longer than [`KEPT_TURN`], and wakes no sleeper for its own deque then. Other workers may
//! steal from the deque. The worker that has waited in the driver has waited for the next timer,
//! too. While the kept turns are over in [`LATE_AT_WORKERS`] by the measure, the worker wakes no
//! other for this wait, and has the monitor watch: otherwise each event of a socket wakes two
//! threads. At each pick from a kept batch the worker reads the clock, and ends the keeping when
//! the span is over. The monitor watches the step in between, as it does for a lone process
//! (`blocking/monitor.rs`).

use super::pace::Pace;
use crate::policy::{KEPT_LONG, KEPT_MOST, KEPT_SPAN, KEPT_TURN, LATE_AT_WORKERS};

/// The turns of a worker since it has left the driver.
pub(super) struct Batch {
    pace: Pace,
    /// Turns by then.
    turns: u64,
    /// Whether the turns of the last ready processes are over before a timer is late.
    is_brief: bool,
}

impl Batch {
    /// Creates a batch without a measure, so that a single process is kept.
    pub(super) fn new() -> Self {
        Self {
            pace: Pace::new(KEPT_SPAN, KEPT_MOST, 1, 0),
            turns: 0,
            is_brief: false,
        }
    }

    /// Enters the driver, after `turns` turns in all.
    pub(super) fn enter(&mut self, turns: u64, now: impl FnOnce() -> u64) {
        let count = turns.saturating_sub(self.turns);
        if count > 0 {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            self.pace.measure(count, now());
            self.turns = turns;
        }
    }

    /// Leaves the driver with `ready` processes. Returns until when the worker keeps them, or 0.
    pub(super) fn leave(&mut self, ready: usize, now: u64) -> u64 {
        let Pace {
            picks, mean, at, ..
        } = &mut self.pace;
        *at = now;
        self.is_brief = *mean > 0 && mean.saturating_mul(ready as u64) <= LATE_AT_WORKERS;
        let (most, span) = if *mean > KEPT_TURN {
            ((KEPT_LONG / *mean).max(1), KEPT_LONG)
        } else {
            (u64::from(*picks), KEPT_SPAN)
        };
        if ready as u64 <= most {
            now.saturating_add(span)
        } else {
            0
        }
    }

    /// Returns whether by the measure all kept turns are over in [`LATE_AT_WORKERS`].
    pub(super) fn is_brief(&self) -> bool {
        self.is_brief
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    /// Returns how many ready processes are kept, after `turns` turns of the length `each`.
    fn kept(turns: u64, each: u64) -> usize {
        let (mut batch, begin) = (Batch::new(), 1_000_000);
        batch.leave(0, begin);
        batch.enter(turns, || begin + turns * each);
        let keeps = |ready: &usize| batch.leave(*ready, begin) > 0;
        (1..=1_000).take_while(keeps).count()
    }

    #[test]
    fn as_many_are_kept_as_are_soon_over() {
        let most = KEPT_MOST as usize;
        assert_eq!(
            [5_000, 20_000, 25_000, 50_000, 1_000_000, 1].map(|it| kept(8, it)),
            [100, 25, 4, 2, 1, most]
        );
        assert_eq!(kept(0, 1), 1);
    }

    #[test]
    fn turns_are_brief_by_a_measure_alone() {
        let is_brief = |turns: u64, each: u64, ready| {
            let mut batch = Batch::new();
            batch.leave(0, 1_000_000);
            batch.enter(turns, || 1_000_000 + turns * each);
            batch.leave(ready, 0);
            batch.is_brief()
        };
        assert!(is_brief(8, 5_000, 20) && !is_brief(8, 5_000, 21));
        assert!(is_brief(1, LATE_AT_WORKERS, 1) && !is_brief(0, 1, 1));
    }
}
