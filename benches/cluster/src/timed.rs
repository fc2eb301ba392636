//! The command line, the amounts and the figures: the same for every carrier, and for the remotes
//! of other peers, whose programs in `benches/foreign/remotes` include this file.

use crate::BoxError;
use clap::Parser;
use ganger_bench_options::job::{Error, Job};
use ganger_bench_options::sample::{Sample, report};
use std::process::ExitCode;
use std::time::Instant;

/// Bytes of a message.
pub const SMALL: usize = 64;

/// Bytes of a message of X3.
pub const LARGE: usize = 1_024;

/// Warm-up does this part of the work.
const WARM_UP: u64 = 20;

/// How many pairs X4 has.
pub(crate) const PAIRS: u64 = 100;

/// The figures of a run: variants of its workload.
pub type Measured = Result<Vec<(&'static str, f64)>, BoxError>;

/// Runs the workload of the command line, and prints its figures: as the first program, or as the
/// second, which prints nothing.
pub fn execute(run: impl FnOnce(&Job) -> Measured) -> ExitCode {
    let job = Job::parse();
    let sample = |(variant, value)| Sample::new(&job, variant, value);
    let measured = run(&job).map(|figures| figures.into_iter().map(sample).collect());
    let failed = |error: BoxError| match error.downcast() {
        Ok(error) => *error,
        Err(error) => Error::Failed(error.to_string()),
    };
    report(&job, measured.map_err(failed))
}

/// Measures round trips, as X1 does, in us, after a warm-up. `run` does as many round trips as its
/// argument says, and returns the 50th and the 99th percentile in nanoseconds.
///
/// # Errors
/// The errors of `run`.
pub fn round_trips(job: &Job, run: impl Fn(u64) -> Result<[u64; 2], BoxError>) -> Measured {
    let count = job.elements();
    run((count / WARM_UP).max(1))?;
    let [p50, p99] = run(count)?;
    Ok(vec![("p50", micros(p50)), ("p99", micros(p99))])
}

/// Measures the time of a message for X2, X3 and X4, in ns, after a warm-up. `run` sends as many
/// messages as its argument says, and returns how many have come in their order.
///
/// # Errors
/// The errors of `run`; and when not all messages have come.
pub fn streams(job: &Job, run: impl Fn(u64) -> Result<u64, BoxError>) -> Measured {
    let count = job.elements();
    run((count / WARM_UP).max(PAIRS))?;
    let begin = Instant::now();
    let came = run(count)?;
    let time = begin.elapsed();
    came_all(count, came)?;
    Ok(vec![("time", time.as_nanos() as f64 / count as f64)])
}

pub(crate) fn came_all(sent: u64, came: u64) -> Result<(), BoxError> {
    match came == sent {
        true => Ok(()),
        false => Err(format!("{sent} were sent, and {came} came in their order").into()),
    }
}

pub(crate) fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}
