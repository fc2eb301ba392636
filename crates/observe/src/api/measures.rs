//! The counts and measures of an observed scheduler.

use serde::{Deserialize, Serialize};

/// The counts of a process since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessCounts {
    /// Turns.
    pub turns: u64,
    /// Steps.
    pub steps: u64,
    /// New events given to its steps.
    pub events: u64,
    /// The messages and events in its mailbox.
    pub waiting: u64,
    /// The time that its steps have taken; an estimate.
    pub busy_ns: u64,
    /// The longest measured step.
    pub longest_step_ns: u64,
    /// The time since its start.
    pub age_ns: u64,
}

/// A yielded command without a completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The number of the command; none where the answer is there, and the step that takes it is
    /// to come.
    pub command: Option<u16>,
    /// The name of its handler.
    pub name: Option<String>,
    /// The tag of the yield.
    pub tag: u64,
    /// The time since the yield, to two milliseconds.
    pub since_ns: u64,
}

/// How a worker has spent its time since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerTimes {
    /// With processes.
    pub busy_ns: u64,
    /// In search of processes.
    pub searching_ns: u64,
    /// Asleep.
    pub asleep_ns: u64,
}

/// Durations since the scheduler was built, and how they are distributed. All are cumulative.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// The number of measured durations.
    pub count: u64,
    /// Their sum, to two digits.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The buckets that are not empty, the shortest durations first: the upper bound in
    /// nanoseconds, inclusive, and the number of durations up to it and above the bucket before.
    /// A viewer takes the difference of two answers, and quantiles from that.
    pub buckets: Vec<(u64, u64)>,
}

/// The distributions of a scheduler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distributions {
    /// From the moment at which a process is ready to the begin of its step.
    pub ready: Distribution,
    /// The lengths of steps.
    pub step: Distribution,
    /// From the moment at which an event is in a mailbox to its step.
    pub mail: Distribution,
    /// How late timers fire.
    pub timer: Distribution,
    /// The busiest types, at most 64, and the rest as `other`.
    pub types: Vec<OfType>,
}

/// The distributions of a type of processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfType {
    /// The name of the type.
    pub type_name: String,
    /// As [`Distributions::ready`].
    pub ready: Distribution,
    /// As [`Distributions::step`].
    pub step: Distribution,
}

impl Distribution {
    /// Returns the least upper bound of a bucket below which that share of the durations is, from 0
    /// to 1; 0 where nothing was measured.
    ///
    /// ```
    /// use ganger_observe::api::Distribution;
    ///
    /// let buckets = vec![(100, 98), (5_000, 2)];
    /// let steps = Distribution { count: 100, buckets, ..Distribution::default() };
    /// assert_eq!((steps.quantile(0.5), steps.quantile(0.99)), (100, 5_000));
    /// ```
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    pub fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.buckets.iter().map(|it| it.1).sum();
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |it| it.0)
    }

    /// Returns the durations since an earlier answer of the same scheduler.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut buckets = Vec::with_capacity(self.buckets.len());
        let mut before = earlier.buckets.iter().peekable();
        for &(bound, count) in &self.buckets {
            while before.next_if(|it| it.0 < bound).is_some() {}
            let old = before.next_if(|it| it.0 == bound).map_or(0, |it| it.1);
            if count > old {
                buckets.push((bound, count - old));
            }
        }
        Self {
            count: self.count.saturating_sub(earlier.count),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            max_ns: buckets.last().map_or(0, |it| it.0),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_bounds_of_buckets() {
        let distribution = Distribution {
            count: 4,
            buckets: vec![(1, 1), (10, 2), (99, 1)],
            ..Distribution::default()
        };
        let at = |share| distribution.quantile(share);
        assert_eq!([at(0.0), at(0.25), at(0.26), at(0.75)], [1, 1, 10, 10]);
        assert_eq!([at(0.76), at(1.0)], [99, 99]);
        assert_eq!(Distribution::default().quantile(0.5), 0);
    }

    #[test]
    fn a_difference_has_what_is_new() {
        let of = |buckets: &[(u64, u64)]| Distribution {
            count: buckets.iter().map(|it| it.1).sum(),
            sum_ns: buckets.iter().map(|it| it.0 * it.1).sum(),
            max_ns: buckets.last().map_or(0, |it| it.0),
            buckets: buckets.to_vec(),
        };
        let earlier = of(&[(1, 5), (20, 1), (30, 1)]);
        let later = of(&[(1, 5), (10, 2), (20, 3), (30, 1), (40, 1)]);
        assert_eq!(later.since(&earlier), of(&[(10, 2), (20, 2), (40, 1)]));
        assert_eq!(later.since(&later), of(&[]));
        assert_eq!(later.since(&of(&[])), later);
    }
}
