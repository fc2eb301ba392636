//! The contests of deques and of mailboxes as samples: a single process runs all queues in turns.

use crate::contest::{Contest, Outcome};
use crate::whole::catalog::{Id, Peer};
use crate::whole::job::{Error, Job};
use crate::whole::sample::Sample;
use crate::{deque, mailbox};

/// Runs all contests of a workload of queues, with as many repetitions as the job has rounds.
/// Returns each repetition's figures.
///
/// # Errors
/// When the workload is none of queues.
///
/// # Panics
/// If a queue has not done its task.
pub fn run(job: &Job) -> Result<Vec<Sample>, Error> {
    let reps = usize::try_from(job.elements()).unwrap_or(usize::MAX);
    let mut all = Vec::new();
    for contest in contests(job.id, job.is_quick())? {
        all.extend(samples(job.id, &contest.run(reps)));
    }
    Ok(all)
}

fn contests(id: Id, quick: bool) -> Result<Vec<Contest>, Error> {
    match id {
        Id::Deque => Ok(deque::contests(quick)),
        Id::Mailbox => Ok(mailbox::contests(quick)),
        other => Err(Error::Failed(format!("{other} is no workload of queues"))),
    }
}

/// Returns the figures of an outcome, repetition by repetition, without unmeasured figures.
fn samples(id: Id, outcome: &Outcome) -> Vec<Sample> {
    let mut samples = Vec::new();
    let first = outcome.rows.first().map_or("", |row| row.name);
    for row in &outcome.rows {
        for (&metric, values) in outcome.metrics.iter().zip(&row.samples) {
            let (peer, own) = entrant(row.name, first);
            let variant = variant(&outcome.name, &own, metric, outcome.metrics);
            let sample = |&value: &f64| Sample {
                workload: id,
                peer,
                variant: variant.clone(),
                unit: unit(metric).to_owned(),
                n: 1,
                value,
                p50: None,
                p99: None,
                max: None,
                histogram: Vec::new(),
            };
            samples.extend(values.iter().filter(|value| value.is_finite()).map(sample));
        }
    }
    samples
}

/// Returns the name of a figure: the contest, Ganger's variant, and the metric where a contest has
/// several.
fn variant(contest: &str, own: &str, metric: &str, metrics: &[&str]) -> String {
    match metrics {
        [_] => format!("{contest}{own}"),
        _ => format!("{contest}{own}: {metric}"),
    }
}

/// Returns the peer of an entrant. An entrant that is no peer is a variant of Ganger, the first.
fn entrant(name: &str, first: &str) -> (Peer, String) {
    if name == first {
        return (Peer::Ganger, String::new());
    }
    match name.parse() {
        Ok(peer) => (peer, String::new()),
        Err(_) => {
            let own = name.strip_prefix(first).unwrap_or(name);
            (Peer::Ganger, format!(" ({})", own.trim_start_matches(", ")))
        }
    }
}

/// Returns the unit of a metric; nothing for a pure number.
fn unit(metric: &str) -> &'static str {
    let is_word = |word: &&str| metric.split(' ').any(|part| part == *word);
    ["ns", "ms", "bytes"]
        .into_iter()
        .find(is_word)
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Row;

    #[test]
    fn an_outcome_is_a_sample_for_each_repetition() {
        let row = |name, samples: [&[f64]; 2]| Row {
            name,
            samples: samples.map(<[f64]>::to_vec).into(),
        };
        let outcome = Outcome {
            name: "walk".to_owned(),
            metrics: &["CPU ns", "steals"],
            rows: vec![
                row("ganger-deque", [&[1.0, 2.0], &[0.0, 1.0]]),
                row("st3", [&[3.0, f64::NAN], &[1.0, 1.0]]),
                row("ganger-deque, not exposed", [&[5.0, 6.0], &[1.0, 1.0]]),
            ],
        };
        let samples = samples(Id::Deque, &outcome);
        let of = |peer, variant: &str| -> Vec<f64> {
            let is_it = |s: &&Sample| s.peer == peer && s.variant == variant;
            samples.iter().filter(is_it).map(|s| s.value).collect()
        };
        assert_eq!(of(Peer::Ganger, "walk: CPU ns"), [1.0, 2.0]);
        assert_eq!(of(Peer::St3, "walk: CPU ns"), [3.0]);
        assert_eq!(of(Peer::Ganger, "walk (not exposed): CPU ns"), [5.0, 6.0]);
        assert_eq!(samples.len(), 11);
        let unit = |nth: usize| samples[nth].unit.as_str();
        assert_eq!([unit(0), unit(2)], ["ns", ""]);
    }

    /// Returns each figure that Ganger has, its unit, and whether a peer has it, too.
    fn figures(id: Id) -> Vec<(String, &'static str, bool)> {
        let mut figures = Vec::new();
        for contest in contests(id, true).unwrap() {
            let entrants: Vec<_> = contest.entrants.iter().map(|it| it.0).collect();
            let of = |name| entrant(name, entrants[0]);
            let has_peers = entrants.iter().any(|name| of(name).0 != Peer::Ganger);
            let ours = entrants.iter().map(|name| of(name));
            for (_, own) in ours.filter(|(peer, _)| *peer == Peer::Ganger) {
                for &metric in contest.metrics {
                    let name = variant(&contest.name, &own, metric, contest.metrics);
                    figures.push((name, unit(metric), has_peers && own.is_empty()));
                }
            }
        }
        figures
    }

    #[test]
    fn the_catalog_has_the_figures_that_count_by_their_names() {
        for id in [Id::Deque, Id::Mailbox] {
            let figures = figures(id);
            for metric in id.spec().metrics {
                let is_it = |figure: &&(String, &str, bool)| figure.0 == metric.variant;
                let found = figures.iter().find(is_it);
                let (.., unit, _) = found.unwrap_or_else(|| panic!("nobody runs {metric:?}"));
                assert_eq!(*unit, metric.unit, "{metric:?}");
            }
            for (name, unit, has_peers) in figures {
                let is_comparable = has_peers && !unit.is_empty();
                // Wall-clock time equals its own time, or the run does not count.
                let is_another = name.starts_with("owner") && name.contains("wall ns");
                let counts = id.spec().metric(&name).is_some();
                assert!(!is_comparable || counts != is_another, "{name}");
            }
        }
    }
}
