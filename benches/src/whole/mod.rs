//! Whole workloads: a run of a workload by a peer, in a process of its own.
//!
//! ```text
//! contestant  what a peer does in each workload
//! load        messages, and their receivers
//! acts        what actors do, whichever peer runs them
//! peers       how each peer starts actors and sends to them
//! measure     runs a job: how often, warm-up, the clock, what has to come out
//! gate        many hits, one wake-up: what every workload ends at
//! bell        W10, W10spin, W10busy, W10busyspin
//! busy        W10busy, W10busyspin: programs beside
//! board       W12, W13b, W13c: how late processes are
//! turns       W12, W13, W13b, W13c, W16: what processes do in a step
//! jobs        S5: what is done
//! timed       W14 to W17: when timers are due
//! ```
//!
//! The program is `ganger-workload`; programs in other languages take the same arguments and answer
//! in the same lines.

mod acts;
mod bell;
mod board;
pub mod busy;
mod contestant;
mod gate;
mod jobs;
mod latency;
mod load;
mod measure;
mod memory;
mod peers;
mod timed;
mod turns;

pub use ganger_bench_options::{catalog, job, sample};

pub use measure::list;
pub use peers::run;
