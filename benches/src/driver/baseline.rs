//! Compares two results: which figures have become worse, beyond the noise of the runs themselves.
//!
//! A figure is worse if its minimum is above the earlier minimum by more than the threshold plus
//! the noise of the noisier result. Only Ganger's figures count. Peers' figures show how much the
//! machine itself has changed, which is reported but not subtracted.

use super::lines::{Absence, Figure, Reason, Results};
use crate::stats::{median, noise};
use crate::text::{figure, with_unit};
use crate::whole::catalog::Peer;
use std::fmt::Write;

/// The comparison of two results.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    /// How many of Ganger's figures are worse, or gone because their run failed.
    pub(super) worse: usize,
    /// The changes for people, the worst first.
    pub(super) text: String,
}

/// Compares two results; `threshold` is a part of the earlier figure.
///
/// # Errors
/// When Ganger has no figure in both.
pub(super) fn compare(old: &Results, new: &Results, threshold: f64) -> Result<Comparison, String> {
    check_allocator(old, &new.machine.allocator)?;
    let gone = new.absences.iter().filter(|now| is_gone(old, now));
    let gone: Vec<_> = gone
        .map(
            |Absence {
                 workload,
                 point,
                 why,
                 ..
             }| format!("worse:  {workload}, {point}: {why}"),
        )
        .collect();
    let (mut changes, mut drifts) = (Vec::new(), Vec::new());
    let mut same = 0;
    for (old, new) in pairs(old, new) {
        let times = new.min / old.min;
        if new.peer != Peer::Ganger {
            drifts.push(times);
            continue;
        }
        let noise = noise(old.min, old.median).max(noise(new.min, new.median));
        let most = 1.0 + threshold + noise;
        if (1.0 / most..=most).contains(&times) {
            same += 1;
            continue;
        }
        let verdict = if times > 1.0 { "worse:" } else { "better:" };
        let text = format!(
            "{verdict:<7} {} {}, {}: {} -> {} ({times:.2} times, noise {:.0} %)",
            new.workload,
            new.variant,
            new.point,
            figure(old.min),
            with_unit(&figure(new.min), &new.unit),
            100.0 * noise,
        );
        changes.push((times, text));
    }
    if changes.is_empty() && gone.is_empty() && same == 0 {
        return Err(
            "there is nothing to compare: the baseline has no figure of Ganger of the same \
                    workload, size and number of workers"
                .to_owned(),
        );
    }
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worse = changes.iter().filter(|(times, _)| *times > 1.0).count() + gone.len();
    let better = changes.len() + gone.len() - worse;
    let mut text = format!(
        "Beside the baseline: {worse} worse, {better} better, {same} the same within the noise.\n"
    );
    for line in changes.iter().map(|(_, text)| text).chain(&gone) {
        let _ = writeln!(text, "  {line}");
    }
    if let Some(drift) = median(drifts) {
        let _ = writeln!(
            text,
            "The peers' own figures are {drift:.2} times what they were."
        );
    }
    if (&old.machine.cpu, old.machine.cores) != (&new.machine.cpu, new.machine.cores) {
        text.push_str("The baseline is of another machine: its times say little.\n");
    }
    Ok(Comparison { worse, text })
}

/// Checks that the earlier figures are with the same allocator.
///
/// # Errors
/// If not: to compare them would be to compare allocators.
pub(super) fn check_allocator(old: &Results, now: &str) -> Result<(), String> {
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
/// left out if the sizes of the results differ. No figure is a multiple of zero.
fn pairs<'a>(old: &'a Results, new: &'a Results) -> impl Iterator<Item = (&'a Figure, &'a Figure)> {
    let is_same_size = old.machine.quick == new.machine.quick;
    let figures = new.figures.iter();
    let figures = figures.filter(move |new| is_same_size || !new.workload.is_queue());
    figures.filter_map(|new| {
        let key = |f: &'a Figure| (f.workload, f.peer, f.point, f.n, &f.variant, &f.unit);
        let mut olds = old.figures.iter();
        let same = olds.find(|&old| key(old) == key(new))?;
        (same.min > 0.0).then_some((same, new))
    })
}

fn is_gone(old: &Results, now: &Absence) -> bool {
    let had = |f: &Figure| (f.workload, f.peer, f.point) == (now.workload, now.peer, now.point);
    now.peer == Peer::Ganger
        && matches!(now.reason, Reason::Crashed | Reason::Timeout)
        && old.figures.iter().any(had)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::fixture;
    use ganger_bench_options::mode::Mode;

    /// Returns results with the figures of Ganger, or of its peers, multiplied, and with noise.
    fn changed(of_ganger: bool, times: f64, noise: f64) -> Results {
        let mut results = fixture::results();
        for figure in &mut results.figures {
            if (figure.peer == Peer::Ganger) == of_ganger {
                figure.min *= times;
                figure.median = figure.min * (1.0 + noise);
            }
        }
        results
    }

    fn said(old: &Results, new: &Results) -> String {
        let Comparison { worse, text } = compare(old, new, 0.05).unwrap();
        assert_eq!(
            worse > 0,
            !text.starts_with("Beside the baseline: 0 worse"),
            "{text}"
        );
        text
    }

    #[test]
    fn worse_is_beyond_the_threshold_and_the_noise() {
        let old = changed(true, 1.0, 0.0);
        for (times, noise, counts) in [
            (1.04, 0.0, "0 worse, 0 better"),
            (1.06, 0.02, "0 worse, 0 better"),
            (0.9, 0.0, "0 worse, "),
            (1.0, 0.0, "0 worse, 0 better"),
        ] {
            let text = said(&old, &changed(true, times, noise));
            assert!(
                text.starts_with(&format!("Beside the baseline: {counts}")),
                "{text}"
            );
            assert_eq!(text.contains("better: W1 time, 2 workers: "), times < 1.0);
        }
        let text = said(&old, &changed(true, 1.06, 0.0));
        assert!(
            text.contains("worse:  W1 time, 2 workers, with idle loops: "),
            "{text}"
        );
        assert!(text.contains(" 0 better, 0 the same"), "{text}");
    }

    #[test]
    fn peers_do_not_count_but_show_the_drift_and_other_machines_are_said() {
        let old = changed(false, 1.0, 0.0);
        let mut new = changed(false, 3.0, 0.0);
        new.machine.cores += 1;
        let text = said(&old, &new);
        assert!(
            text.contains(": 0 worse, 0 better") && text.contains("are 3.00 times"),
            "{text}"
        );
        assert!(text.contains("another machine"), "{text}");
    }

    #[test]
    fn what_ganger_fails_at_now_is_worse_and_what_was_not_run_is_not() {
        let old = fixture::results();
        let mut new = old.clone();
        let gone = new.figures.remove(0);
        assert!(said(&old, &new).contains(": 0 worse"));
        let mut absence = new.absences[0].clone();
        (absence.peer, absence.workload, absence.point) = (gone.peer, gone.workload, gone.point);
        for (reason, is_worse) in [(Reason::Memory, false), (Reason::Crashed, true)] {
            absence.reason = reason;
            new.absences.push(absence.clone());
            assert_eq!(
                said(&old, &new).contains("worse:  W1, 2 workers: `go`"),
                is_worse
            );
        }
    }

    #[test]
    fn other_sizes_modes_and_allocators_are_not_compared() {
        let old = fixture::results();
        let refused = |change: fn(&mut Results), why: &str| {
            let mut new = old.clone();
            change(&mut new);
            let mut old = old.clone();
            old.figures.retain(|figure| figure.point.mode == Mode::AsIs);
            let error = compare(&old, &new, 0.05).unwrap_err();
            assert!(error.contains(why), "{error}");
        };
        let nothing = "nothing to compare";
        refused(
            |new| new.figures.iter_mut().for_each(|it| it.n += 1),
            nothing,
        );
        refused(
            |new| new.figures.retain(|it| it.point.mode == Mode::Loops),
            nothing,
        );
        refused(
            |new| new.machine.allocator = "mimalloc".to_owned(),
            "another allocator",
        );
        let of_queues_in_quick = |new: &mut Results| {
            new.machine.quick = true;
            new.figures.retain(|figure| figure.workload.is_queue());
        };
        refused(of_queues_in_quick, nothing);
    }
}
