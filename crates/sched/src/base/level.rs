//! How much of a scheduler is counted and measured.

/// How much of a scheduler is counted and measured, from the least to the most.
///
/// ```
/// # #[cfg(feature = "observe")] {
/// use ganger_sched::{Observe, Scheduler};
///
/// let scheduler = Scheduler::builder().observe(Observe::Histograms).start()?;
/// scheduler.set_observe(Observe::Counts)?;
/// assert_eq!(scheduler.observes(), Observe::Counts);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
#[cfg_attr(
    not(feature = "observe"),
    expect(dead_code, unreachable_pub, reason = "the feature makes it public")
)]
pub enum Observe {
    /// Nothing but the counters of [`Stats`](crate::Stats). A process takes no more time and no
    /// more memory than without the feature, but for a pointer and 8 bytes.
    #[default]
    Off,
    /// For each process turns, steps, events, busy time, the longest step, the length of its
    /// mailbox, its age and its label. For each worker its times of work, search and sleep. At most
    /// 96 bytes a process more.
    Counts,
    /// Also how long ready processes wait for a worker, steps last, events wait in mailboxes, and
    /// timers are late: as distributions, for all processes together and by type.
    Histograms,
}

/// All levels, by their numbers.
#[cfg(feature = "observe")]
const LEVELS: [Observe; 3] = [Observe::Off, Observe::Counts, Observe::Histograms];

#[cfg(feature = "observe")]
impl Observe {
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of(number: u8) -> Self {
        LEVELS.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// The scheduler was not built for the requested level.
///
/// Counts are exact because they begin with the scheduler. So a scheduler built to be observed
/// never stops to count, and any other never begins.
#[cfg(feature = "observe")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the scheduler was built with `observe({most:?})` and can't change to {level:?}: build it \
     with `Builder::observe({level:?})`"
)]
#[non_exhaustive]
pub struct NotAllowed {
    /// The requested level.
    pub level: Observe,
    /// The scheduler's highest level.
    pub most: Observe,
}

#[cfg(all(test, feature = "observe", not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_number_and_more_is_more() {
        for (number, level) in LEVELS.into_iter().enumerate() {
            assert_eq!(usize::from(level.number()), number);
            assert_eq!(Observe::of(level.number()), level);
        }
        assert!(LEVELS.is_sorted());
        assert_eq!(Observe::of(200), Observe::Off);
    }
}
