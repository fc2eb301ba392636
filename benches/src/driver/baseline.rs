//! Compares two results: which figures have become worse, beyond the noise of the runs themselves.
//!
//! A figure is worse if its minimum is above the earlier minimum by more than the threshold plus
//! the noise of the noisier result. Only Ganger's figures count. Peers' figures show how much the
//! machine itself has changed, which is reported but not subtracted.

use super::lines::{Absence, Figure, Reason, Results};
use crate::stats::{median, noise};
use crate::text::{figure, with_unit};
use crate::whole::catalog::Peer;
use ganger_bench_options::threshold::Threshold;
use std::fmt::{self, Write};

/// The comparison of two results.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Ganger's figures in both results.
    pub changes: Vec<Change>,
    /// Ganger's earlier figures without a counterpart, because their run failed.
    pub gone: Vec<Absence>,
    /// The median of how many times their earlier figures the peers' are.
    pub drift: Option<f64>,
    /// Whether the processor, or the number of cores, is another.
    pub is_other_machine: bool,
}

/// A figure of Ganger's, earlier and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Now.
    pub figure: Figure,
    /// The minimum then.
    pub before: f64,
    /// How many times the earlier minimum it is.
    pub times: f64,
    /// The noise of the noisier of the two.
    pub noise: f64,
    /// What that means.
    pub verdict: Verdict,
}

/// The meaning of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// More, beyond the noise.
    Worse,
    /// Less, beyond the noise.
    Better,
    /// Neither.
    Same,
}

/// Compares two results.
///
/// # Errors
/// When Ganger has no figure in both.
pub fn compare(old: &Results, new: &Results, threshold: Threshold) -> Result<Comparison, String> {
    let changes: Vec<_> = pairs(old, new)
        .filter(|(_, new)| new.peer == Peer::Ganger)
        .filter_map(|(old, new)| Change::between(old, new, threshold))
        .collect();
    let gone: Vec<_> = new
        .absences
        .iter()
        .filter(|now| is_gone(old, now))
        .cloned()
        .collect();
    check_allocator(old, &new.machine.allocator)?;
    if changes.is_empty() && gone.is_empty() {
        return Err(
            "there is nothing to compare: the baseline has no figure of Ganger of the same \
                    workload, size and number of workers"
                .to_owned(),
        );
    }
    let peers = pairs(old, new).filter(|(old, new)| new.peer != Peer::Ganger && old.min > 0.0);
    Ok(Comparison {
        changes,
        gone,
        drift: median(peers.map(|(old, new)| new.min / old.min)),
        is_other_machine: (&old.machine.cpu, old.machine.cores)
            != (&new.machine.cpu, new.machine.cores),
    })
}

/// Checks that the earlier figures are with the same allocator.
///
/// # Errors
/// If not: to compare them would be to compare allocators.
pub fn check_allocator(old: &Results, now: &str) -> Result<(), String> {
    let before = &old.machine.allocator;
    if before == now {
        return Ok(());
    }
    Err(format!(
        "the baseline is with another allocator ({before}) than these figures ({now}): that \
         compares allocators"
    ))
}

/// Returns pairs of figures of the same kind. Figures of queues do not name their size: they are
/// left out if the sizes of the results differ.
fn pairs<'a>(old: &'a Results, new: &'a Results) -> impl Iterator<Item = (&'a Figure, &'a Figure)> {
    let is_same_size = old.machine.quick == new.machine.quick;
    let figures = new.figures.iter();
    let figures = figures.filter(move |new| is_same_size || !new.workload.is_queue());
    figures.filter_map(|new| {
        let same = old.figures.iter().find(|old| is_same(old, new))?;
        Some((same, new))
    })
}

fn is_same(old: &Figure, new: &Figure) -> bool {
    let key = |f: &Figure| (f.workload, f.peer, f.point(), f.n);
    key(old) == key(new) && old.variant == new.variant && old.unit == new.unit
}

fn is_gone(old: &Results, now: &Absence) -> bool {
    let had =
        |f: &&Figure| (f.workload, f.peer, f.point()) == (now.workload, now.peer, now.point());
    now.peer == Peer::Ganger
        && matches!(now.reason, Reason::Crashed | Reason::Timeout)
        && old.figures.iter().any(|figure| had(&figure))
}

impl Change {
    /// Returns `None` if the earlier figure is zero: no figure is a multiple of zero.
    fn between(old: &Figure, new: &Figure, threshold: Threshold) -> Option<Self> {
        if old.min <= 0.0 {
            return None;
        }
        let noise = noise(old.min, old.median).max(noise(new.min, new.median));
        let (times, most) = (new.min / old.min, 1.0 + threshold.part() + noise);
        let verdict = match times {
            times if times > most => Verdict::Worse,
            times if times < 1.0 / most => Verdict::Better,
            _ => Verdict::Same,
        };
        Some(Self {
            figure: new.clone(),
            before: old.min,
            times,
            noise,
            verdict,
        })
    }
}

impl Comparison {
    /// Whether anything of Ganger's is worse, or gone.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        !self.gone.is_empty() || self.changes.iter().any(|c| c.verdict == Verdict::Worse)
    }

    /// Describes the changes for people, the worst first.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let count = |verdict| self.changes.iter().filter(|c| c.verdict == verdict).count();
        let _ = writeln!(
            text,
            "Beside the baseline: {} worse, {} better, {} the same within the noise.",
            count(Verdict::Worse) + self.gone.len(),
            count(Verdict::Better),
            count(Verdict::Same),
        );
        let mut changes: Vec<_> = self.changes.iter().collect();
        changes.retain(|change| change.verdict != Verdict::Same);
        changes.sort_by(|a, b| b.times.total_cmp(&a.times));
        for change in changes {
            let _ = writeln!(text, "  {change}");
        }
        for gone in &self.gone {
            let Absence { workload, why, .. } = gone;
            let _ = writeln!(text, "  worse:  {workload}, {}: {why}", gone.point());
        }
        if let Some(drift) = self.drift {
            let _ = writeln!(
                text,
                "The peers' own figures are {drift:.2} times what they were."
            );
        }
        if self.is_other_machine {
            text.push_str("The baseline is of another machine: its times say little.\n");
        }
        text
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = &self.figure;
        let verdict = match self.verdict {
            Verdict::Worse => "worse:",
            Verdict::Better => "better:",
            Verdict::Same => "same:",
        };
        write!(
            f,
            "{verdict:<7} {} {}, {}: {} -> {} ({:.2} times, noise {:.0} %)",
            now.workload,
            now.variant,
            now.point(),
            figure(self.before),
            with_unit(&figure(now.min), &now.unit),
            self.times,
            100.0 * self.noise,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use ganger_bench_options::mode::Mode;

    fn threshold(percent: &str) -> Threshold {
        percent.parse().unwrap()
    }

    /// Returns results with Ganger's figures multiplied, and with this noise.
    fn changed(times: f64, noise: f64) -> Results {
        let mut results = fixture::results();
        for figure in results
            .figures
            .iter_mut()
            .filter(|f| f.peer == Peer::Ganger)
        {
            figure.min *= times;
            figure.median = figure.min * (1.0 + noise);
        }
        results
    }

    fn verdicts(old: &Results, new: &Results) -> Vec<Verdict> {
        let comparison = compare(old, new, threshold("5")).unwrap();
        let mut verdicts: Vec<_> = comparison.changes.iter().map(|c| c.verdict).collect();
        assert_eq!(comparison.is_worse(), verdicts.contains(&Verdict::Worse));
        verdicts.dedup();
        verdicts
    }

    #[test]
    fn worse_is_beyond_the_threshold_and_the_noise() {
        let old = changed(1.0, 0.0);
        assert_eq!(verdicts(&old, &changed(1.04, 0.0)), [Verdict::Same]);
        assert_eq!(verdicts(&old, &changed(1.06, 0.0)), [Verdict::Worse]);
        assert_eq!(verdicts(&old, &changed(1.06, 0.02)), [Verdict::Same]);
        assert_eq!(
            verdicts(&changed(1.0, 0.02), &changed(1.06, 0.0)),
            [Verdict::Same]
        );
        assert_eq!(verdicts(&old, &changed(0.9, 0.0)), [Verdict::Better]);
        assert_eq!(verdicts(&old, &old), [Verdict::Same]);
    }

    #[test]
    fn peers_do_not_count_but_show_the_drift() {
        let old = fixture::results();
        let mut new = old.clone();
        for figure in new.figures.iter_mut().filter(|f| f.peer != Peer::Ganger) {
            figure.min *= 3.0;
        }
        let comparison = compare(&old, &new, threshold("5")).unwrap();
        assert!(!comparison.is_worse());
        assert!((comparison.drift.unwrap() - 3.0).abs() < 1e-9);
        assert!(
            comparison.text().contains("3.00 times"),
            "{}",
            comparison.text()
        );
    }

    #[test]
    fn what_ganger_fails_at_now_is_worse_and_what_was_not_run_is_not() {
        let old = fixture::results();
        let mut new = old.clone();
        let gone = new
            .figures
            .iter()
            .position(|f| f.peer == Peer::Ganger)
            .unwrap();
        let gone = new.figures.remove(gone);
        assert!(!compare(&old, &new, threshold("5")).unwrap().is_worse());
        new.absences.push(Absence {
            workload: gone.workload,
            peer: gone.peer,
            workers: gone.workers,
            processes: gone.processes,
            producers: gone.producers,
            mode: gone.mode,
            reason: Reason::Crashed,
            why: "the sum is wrong".to_owned(),
        });
        // A run that is new, or would not fit into memory, is not gone.
        let mut other = new.clone();
        other.absences.last_mut().unwrap().workers = 77;
        assert!(!compare(&old, &other, threshold("5")).unwrap().is_worse());
        other = new.clone();
        other.absences.last_mut().unwrap().reason = Reason::Memory;
        assert!(!compare(&old, &other, threshold("5")).unwrap().is_worse());
        let comparison = compare(&old, &new, threshold("5")).unwrap();
        assert!(comparison.is_worse());
        assert!(comparison.text().contains("the sum is wrong"));
    }

    #[test]
    fn figures_are_compared_with_those_of_their_mode() {
        let old = changed(1.0, 0.0);
        let mut new = old.clone();
        for figure in new.figures.iter_mut().filter(|f| f.mode == Mode::Loops) {
            figure.min *= 3.0;
        }
        let comparison = compare(&old, &new, threshold("5")).unwrap();
        for change in &comparison.changes {
            let is_worse = change.verdict == Verdict::Worse;
            assert_eq!(is_worse, change.figure.mode == Mode::Loops, "{change}");
        }
        assert!(comparison.is_worse());
        assert!(comparison.text().contains("2 workers, with idle loops:"));
        new.figures.retain(|figure| figure.mode == Mode::Loops);
        let mut old = old;
        old.figures.retain(|figure| figure.mode == Mode::AsIs);
        assert!(compare(&old, &new, threshold("5")).is_err());
    }

    #[test]
    fn other_sizes_are_not_compared_and_other_machines_are_said() {
        let old = fixture::results();
        let mut new = old.clone();
        new.machine.cores += 1;
        assert!(
            compare(&old, &new, threshold("5"))
                .unwrap()
                .is_other_machine
        );
        let nothing = |new: &Results| {
            let error = compare(&old, new, threshold("5")).unwrap_err();
            assert!(error.contains("nothing to compare"), "{error}");
        };
        new.figures.iter_mut().for_each(|figure| figure.n += 1);
        nothing(&new);
        new = old.clone();
        new.figures.iter_mut().for_each(|figure| figure.unit += "s");
        nothing(&new);
        new = old.clone();
        new.machine.quick = true;
        assert!(compare(&old, &new, threshold("5")).is_ok());
        new.figures.retain(|figure| figure.workload.is_queue());
        nothing(&new);
        new = old.clone();
        new.machine.allocator = "mimalloc".to_owned();
        let error = compare(&old, &new, threshold("5")).unwrap_err();
        assert!(error.contains("another allocator"), "{error}");
    }

    #[test]
    fn no_figure_is_a_multiple_of_nothing() {
        let mut old = fixture::results();
        let count = |old: &Results| {
            let new = fixture::results();
            compare(old, &new, threshold("5")).unwrap().changes.len()
        };
        let all = count(&old);
        old.figures[0].min = 0.0;
        assert_eq!(count(&old), all - 1);
    }

    #[test]
    fn the_worst_comes_first_and_what_is_the_same_is_not_said() {
        let mut old = changed(1.0, 0.0);
        old.figures.retain(|f| f.mode == Mode::AsIs);
        let mut new = old.clone();
        let ours = new.figures.iter_mut().filter(|f| f.peer == Peer::Ganger);
        for (figure, times) in ours.zip([0.5, 1.0, 2.0, 3.0]) {
            figure.min *= times;
            figure.median = figure.min;
        }
        let mut absence = new.absences[0].clone();
        (absence.peer, absence.workload) = (Peer::Ganger, crate::whole::catalog::Id::W13);
        absence.reason = Reason::Timeout;
        new.absences.push(absence);
        let text = compare(&old, &new, threshold("5")).unwrap().text();
        assert!(
            text.starts_with("Beside the baseline: 3 worse, 1 better, "),
            "{text}"
        );
        let lines: Vec<&str> = text.lines().skip(1).take(4).map(str::trim).collect();
        let starts = [
            "worse:  W3b ",
            "worse:  W3a ",
            "better: W1 ",
            "worse:  W13, ",
        ];
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{text}");
        }
        assert!(!text.contains("same:"), "{text}");
    }
}
