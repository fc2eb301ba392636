//! The contests of deques and of mailboxes as samples: one process runs all queues in turns.

use crate::contest::{Contest, Outcome};
use crate::whole::catalog::{Id, Peer};
use crate::whole::job::{Error, Job};
use crate::whole::sample::Sample;
use crate::{deque, mailbox};

/// Runs all contests of a workload of queues, with as many repetitions as the job has rounds, and
/// hands each repetition's figures to `take` as soon as a contest is done.
///
/// # Errors
/// When the workload is none of queues.
///
/// # Panics
/// When a queue has not done what it was told to do.
pub fn run(job: &Job, mut take: impl FnMut(Sample)) -> Result<(), Error> {
    let quick = job.is_quick();
    let contests: Vec<Contest> = match job.id {
        Id::Deque => deque::Group::ALL
            .iter()
            .flat_map(|group| group.contests(quick))
            .collect(),
        Id::Mailbox => mailbox::Group::ALL
            .iter()
            .flat_map(|group| group.contests(quick))
            .collect(),
        other => return Err(Error::Failed(format!("{other} is no workload of queues"))),
    };
    let reps = usize::try_from(job.elements()).unwrap_or(usize::MAX);
    for contest in contests {
        samples(job.id, &contest.run(reps))
            .into_iter()
            .for_each(&mut take);
    }
    Ok(())
}

/// The figures of an outcome, repetition by repetition; what could not be measured is not there.
fn samples(id: Id, outcome: &Outcome) -> Vec<Sample> {
    let mut samples = Vec::new();
    let first = outcome.rows.first().map_or("", |row| row.name);
    for row in &outcome.rows {
        for (&metric, values) in outcome.metrics.iter().zip(&row.samples) {
            let (peer, variant) = entrant(row.name, first);
            let measured = match outcome.metrics {
                [_] => String::new(),
                _ => format!(": {metric}"),
            };
            let sample = |&value: &f64| Sample {
                workload: id,
                peer,
                variant: format!("{}{variant}{measured}", outcome.name),
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

/// Who an entrant is; those that are no peer's are variants of Ganger, the first.
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

/// What one of a metric is; nothing for a pure number.
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

    #[test]
    fn entrants_are_peers_or_variants_of_ganger() {
        for name in deque::DEQUES.into_iter().chain(mailbox::MAILBOXES) {
            let (peer, variant) = entrant(name, name);
            assert_eq!((peer, variant.as_str()), (Peer::Ganger, ""));
            let is_ours = name.starts_with("ganger");
            assert_eq!(entrant(name, "x").0 == Peer::Ganger, is_ours, "{name}");
        }
        let (peer, variant) = entrant("Queue, drain", "ganger-mpsc");
        assert_eq!((peer, variant.as_str()), (Peer::Ganger, " (Queue, drain)"));
    }
}
