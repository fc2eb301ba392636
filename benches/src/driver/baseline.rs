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

/// Returns the number of Ganger's figures that are worse, or gone because their run failed; and the
/// changes for people, the worst first. `threshold` is a part of the earlier figure.
///
/// # Errors
/// When no figure of Ganger is in both results, or the results are with different allocators.
pub(super) fn compare(
    old: &Results,
    new: &Results,
    threshold: f64,
) -> Result<(usize, String), String> {
    check_allocator(old, &new.machine.allocator)?;
    let (mut changes, mut drifts, mut same) = (Vec::new(), Vec::new(), 0);
    for (old, new) in pairs(old, new) {
        let times = new.min / old.min;
        let noise = noise(old.min, old.median).max(noise(new.min, new.median));
        let most = 1.0 + threshold + noise;
        if new.peer != Peer::Ganger {
            drifts.push(times);
        } else if (1.0 / most..=most).contains(&times) {
            same += 1;
        } else {
            let text = format!(
                "{:<7} {} {}, {}: {} -> {} ({times:.2} times, noise {:.0} %)",
                if times > 1.0 { "worse:" } else { "better:" },
                new.workload,
                new.variant,
                new.point,
                figure(old.min),
                with_unit(&figure(new.min), &new.unit),
                100.0 * noise,
            );
            changes.push((times, text));
        }
    }
    for it in new.absences.iter().filter(|it| is_gone(old, it)) {
        let text = format!("worse:  {}, {}: {}", it.workload, it.point, it.why);
        changes.push((f64::INFINITY, text));
    }
    if changes.is_empty() && same == 0 {
        return Err(
            "there is nothing to compare: the baseline has no figure of Ganger of the same \
             workload, size and number of workers"
                .to_owned(),
        );
    }
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    let worse = changes.iter().filter(|(times, _)| *times > 1.0).count();
    let better = changes.len() - worse;
    let mut text = format!(
        "Beside the baseline: {worse} worse, {better} better, {same} the same within the noise.\n"
    );
    for (_, line) in &changes {
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
    Ok((worse, text))
}

/// Checks that the earlier figures are with the same allocator.
///
/// # Errors
/// The two allocators, if they differ: such figures would compare allocators.
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
        let same = old.figures.iter().find(|&old| key(old) == key(new))?;
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

    #[test]
    fn worse_is_beyond_the_threshold_and_the_noise() {
        let old = changed(true, 1.0, 0.0);
        for (times, noise, counts) in [
            (1.04, 0.0, "0 worse, 0 better"),
            (1.06, 0.02, "0 worse, 0 better"),
            (1.0, 0.0, "0 worse, 0 better"),
        ] {
            let (worse, text) = compare(&old, &changed(true, times, noise), 0.05).unwrap();
            assert!(worse == 0 && text.contains(counts), "{text}");
        }
        let (worse, text) = compare(&old, &changed(true, 0.9, 0.0), 0.05).unwrap();
        assert!(
            worse == 0 && text.contains("better: W1 time, 2 workers: "),
            "{text}"
        );
        let (worse, text) = compare(&old, &changed(true, 1.06, 0.0), 0.05).unwrap();
        assert!(
            worse > 0 && text.contains(" 0 better, 0 the same"),
            "{text}"
        );
        assert!(
            text.contains("worse:  W1 time, 2 workers, with idle loops: "),
            "{text}"
        );
        let (worse, text) = compare(&old, &changed(false, 3.0, 0.1), 0.05).unwrap();
        assert!(worse == 0 && text.contains("are 3.00 times"), "{text}");
    }

    #[test]
    fn what_ganger_fails_at_now_is_worse_and_other_sizes_and_allocators_are_not_compared() {
        let old = fixture::results();
        let mut new = old.clone();
        let gone = new.figures.remove(0);
        assert_eq!(compare(&old, &new, 0.05).unwrap().0, 0);
        let mut absence = new.absences[2].clone();
        (absence.peer, absence.workload, absence.point) = (gone.peer, gone.workload, gone.point);
        new.absences.push(absence);
        let (worse, text) = compare(&old, &new, 0.05).unwrap();
        assert!(
            worse == 1 && text.contains("worse:  W1, 2 workers: signal"),
            "{text}"
        );
        new.figures.iter_mut().for_each(|it| it.n += 1);
        new.absences.clear();
        assert!(
            compare(&old, &new, 0.05)
                .unwrap_err()
                .contains("nothing to compare")
        );
        new.machine.allocator = "mimalloc".to_owned();
        assert!(
            compare(&old, &new, 0.05)
                .unwrap_err()
                .contains("another allocator")
        );
    }
}
