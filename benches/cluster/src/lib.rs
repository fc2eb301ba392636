//! Benchmarks of two or three programs on a machine, each a node: X1 to X10, and X16.
//!
//! ```text
//! main      a run over ganger's own engine, or by bare sockets
//! rows      what the first program does and measures
//! pair      the second program: how it is started, found and ended
//! far       the processes of the second program
//! tally     the account of a receiver
//! timed     the command line, the amounts and the figures
//! tcp       the lower bound: threads, blocking sockets and frames
//! ```
//!
//! Engines and peers with further crates have programs of their own, with the same rows: over NATS
//! `engines/bench`, the remotes of kameo and ractor `benches/foreign/remotes`.

mod far;
mod pair;
mod rows;
mod tally;
pub mod tcp;
mod timed;

pub use pair::{Carrier, How, Place, Second, second};
pub use tally::{LAST, Tally, block, percentiles};
pub use timed::{LARGE, Measured, SMALL, execute, round_trips, streams};

use ganger::BoxError;
use ganger_bench_options::job::Job;

/// Runs a workload by Ganger's processes over the engine of a carrier.
///
/// # Errors
/// A message is refused, lost, or comes out of order.
pub fn run<C: Carrier>(job: &Job, carrier: C) -> Measured {
    match Place::of_second() {
        Some(place) => pair::serve(job, carrier, &place).map(|()| Vec::new()),
        None => rows::run(job, carrier),
    }
}
