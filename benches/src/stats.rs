//! Statistics of repetitions: the least, the middle, the spread, and ratios pair by pair.

/// The summary of the repetitions of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    /// The least: a disturbance makes a run slower.
    pub(crate) min: f64,
    /// Half of them are at most this.
    pub(crate) median: f64,
    /// The greatest.
    pub(crate) max: f64,
    /// The number of repetitions.
    pub(crate) count: usize,
}

impl Summary {
    /// Creates the summary of the measured values; `None` without any.
    pub(crate) fn of(values: &[Option<f64>]) -> Option<Self> {
        let all = || values.iter().copied().flatten();
        Some(Self {
            min: all().reduce(f64::min)?,
            median: median(all())?,
            max: all().reduce(f64::max)?,
            count: all().count(),
        })
    }
}

/// Returns the noise of repetitions: the distance of the median from the minimum, as a fraction of
/// the minimum.
pub(crate) fn noise(min: f64, median: f64) -> f64 {
    if min > 0.0 { median / min - 1.0 } else { 0.0 }
}

/// Returns the median of `theirs / ours` within each repetition that has both figures.
pub(crate) fn ratio(theirs: &[Option<f64>], ours: &[Option<f64>]) -> Option<f64> {
    let pairs = theirs.iter().zip(ours);
    let pairs = pairs.filter_map(|(&theirs, &ours)| Some((theirs?, ours?)));
    let pairs = pairs.filter(|&(theirs, ours)| theirs > 0.0 && ours > 0.0);
    median(pairs.map(|(theirs, ours)| theirs / ours))
}

/// Returns the median of the measured values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_of_what_was_measured() {
        let summary = Summary::of(&[Some(4.0), None, Some(1.0), Some(9.0), Some(2.0)]);
        let expected = Summary {
            min: 1.0,
            median: 3.0,
            max: 9.0,
            count: 4,
        };
        assert_eq!(summary, Some(expected));
        assert_eq!(Summary::of(&[None, None]), None);
        assert_eq!(Summary::of(&[Some(5.0)]).map(|s| s.median), Some(5.0));
    }

    #[test]
    fn ratios_are_of_pairs_in_the_same_repetition() {
        let ours = [Some(2.0), Some(1.0), Some(10.0), None];
        // The pairs: 1.5, 3 and 0.5. The ratio of the medians would be 2.
        let theirs = [Some(3.0), Some(3.0), Some(5.0), Some(100.0)];
        assert_eq!(ratio(&theirs, &ours), Some(1.5));
        assert_eq!(ratio(&theirs[..2], &ours), Some(2.25));
        assert_eq!(ratio(&[None], &ours), None);
    }

    #[test]
    fn nothing_is_no_multiple_of_nothing() {
        assert_eq!(ratio(&[Some(1.0)], &[Some(0.0)]), None);
        assert_eq!(ratio(&[Some(0.0)], &[Some(1.0)]), None);
        assert!(noise(0.0, 1.0).abs() < 1e-12);
        assert!((noise(2.0, 3.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_median_of_an_even_number_lies_between() {
        assert_eq!(median([4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(median([]), None);
    }
}
