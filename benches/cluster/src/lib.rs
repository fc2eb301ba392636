//! Benchmarks of two programs on a machine, each a node: X1 to X10.
//!
//! ```text
//! main      a run over ganger's own engine, or by bare sockets
//! rows      what the first program does and measures
//! pair      the second program: how it is started, found and ended
//! far       the processes of the second program
//! tally     the account of a receiver
//! tcp       the lower bound: threads, blocking sockets and frames
//! ```
//!
//! Engines that need other crates have a program in `benches/foreign`, with the same rows.

mod far;
mod pair;
mod rows;
mod tally;
pub mod tcp;

pub use pair::{Carrier, Place, Second, second};
pub use rows::{LARGE, SMALL, round_trips, streams};
pub use tally::{LAST, Tally, block, percentiles};

use clap::Parser;
use ganger::BoxError;
use ganger_bench_options::job::{Error, Job};
use ganger_bench_options::sample::Sample;
use std::process::ExitCode;

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    job: Job,
}

/// What a run has measured: variants of its workload.
pub type Measured = Result<Vec<(&'static str, f64)>, BoxError>;

/// Runs the workload of the command line, and prints its figures: as the first program, or as the
/// second, which prints nothing.
pub fn execute(run: impl FnOnce(&Job) -> Measured) -> ExitCode {
    let job = Options::parse().job;
    match run(&job) {
        Ok(figures) => {
            for (variant, value) in figures {
                println!("{}", Sample::new(&job, variant, value).line());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{} {}: {error}", job.id, job.peer);
            let error = error.downcast::<Error>();
            error.map_or(ExitCode::FAILURE, |error| error.exit_code())
        }
    }
}

/// Runs a workload by Ganger's processes over the engine of a carrier.
///
/// # Errors
/// Whatever is refused, lost, or comes out of order.
pub fn run<C: Carrier>(job: &Job, carrier: C) -> Measured {
    match Place::of_second() {
        Some(place) => pair::serve(job, carrier, &place).map(|()| Vec::new()),
        None => rows::run(job, carrier),
    }
}
