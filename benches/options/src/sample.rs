//! A run's answers: a line of JSON for each figure.
//!
//! ```text
//! {"workload":"W8","peer":"tokio","variant":"spawn","unit":"ns","n":1000000,"value":893.1}
//! ```

use super::catalog::{Id, Peer};
use super::job::{Error, Job};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// A figure of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// The workload.
    pub workload: Id,
    /// The peer.
    pub peer: Peer,
    /// The figure's name within the workload.
    pub variant: String,
    /// Its unit.
    pub unit: String,
    /// How many elements it is the figure of.
    pub n: u64,
    /// The figure, for each element if the unit is a time. Less is better.
    pub value: f64,
    /// Of latencies, in the same unit: half of them are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// Of latencies: 99 in 100 are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// Of latencies: the worst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Of latencies: upper bounds in nanoseconds, ascending, each with how many are in its bucket;
    /// at most [`BUCKETS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<(u64, u64)>,
}

/// How many buckets a histogram has at most.
pub const BUCKETS: usize = 100;

impl Sample {
    /// Creates a figure of a job.
    ///
    /// # Panics
    /// When the catalog has no such variant of the workload.
    pub fn new(job: &Job, variant: &str, value: f64) -> Self {
        let metric = job.spec().metric(variant);
        let metric = metric.unwrap_or_else(|| panic!("{} has no variant `{variant}`", job.id));
        Self {
            workload: job.id,
            peer: job.peer,
            variant: variant.to_owned(),
            unit: metric.unit.to_owned(),
            n: job.elements(),
            value,
            p50: None,
            p99: None,
            max: None,
            histogram: Vec::new(),
        }
    }

    /// Returns the sample's line, without its end.
    ///
    /// # Panics
    /// When the figure is not finite: JSON has no such number.
    pub fn line(&self) -> String {
        assert!(self.value.is_finite(), "not measured: {self:?}");
        serde_json::to_string(self).expect("a sample has no map and nothing that fails")
    }

    /// Parses the sample of a line.
    ///
    /// # Errors
    /// If the line is no sample, or an impossible sample: the message names the fault.
    pub fn parse(line: &str) -> Result<Self, String> {
        let sample: Self = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let ascends = sample.histogram.is_sorted_by(|a, b| a.0 < b.0);
        if !sample.value.is_finite() || sample.value < 0.0 {
            Err(format!("its value is {}", sample.value))
        } else if sample.n == 0 {
            Err("it is the figure of nothing: n is 0".to_owned())
        } else if !ascends || sample.histogram.len() > BUCKETS {
            Err(format!(
                "its histogram does not ascend, or has more than {BUCKETS} buckets"
            ))
        } else {
            Ok(sample)
        }
    }
}

/// Prints what a run has measured, a line each, or why it failed. Returns the exit code of its
/// program.
pub fn report(job: &Job, measured: Result<Vec<Sample>, Error>) -> ExitCode {
    match measured {
        Ok(samples) => {
            samples.iter().for_each(|it| println!("{}", it.line()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{} {}: {error}", job.id, job.peer);
            error.exit_code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Size;

    #[test]
    fn a_sample_survives_its_line_and_what_cannot_be_is_refused() {
        let job = Job::new(Id::W8, Peer::Tokio, 2, Size::Full);
        let mut sample = Sample::new(&job, "spawn", 893.1);
        let line = "{\"workload\":\"W8\",\"peer\":\"tokio\",\"variant\":\"spawn\",\"unit\":\"ns\",\
                    \"n\":1000000,\"value\":893.1}";
        assert_eq!(sample.line(), line);
        for (from, to, reason) in [
            ("893.1", "-1", "its value is -1"),
            ("893.1", "1,\"histogram\":[[2,1],[2,1]]", "ascend"),
            ("893.1", "1,\"more\":2", "unknown field `more`"),
            ("1000000", "0", "n is 0"),
            ("W8", "W88", "W88"),
        ] {
            let error = Sample::parse(&line.replace(from, to)).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        (sample.p50, sample.p99, sample.max) = (Some(3.7), Some(8.4), Some(100.0));
        sample.histogram = vec![(4_000, 150), (9_000, 48), (100_000, 2)];
        assert_eq!(Sample::parse(&sample.line()), Ok(sample));
    }
}
