//! What the benchmarks run: processes for the scheduler, with the gate that they report to, and
//! workloads for the deque and the mailbox beside their peers.
//!
//! The benchmarks themselves are in the folder `benches`: `cargo bench -p ganger-benches`.

pub mod contest;
pub mod deque;
pub mod mailbox;

mod ask;
mod fan_in;
mod gate;
mod once;
mod pair;

pub use ask::{Asker, ECHO, echo};
pub use fan_in::{Consumer, Producer};
pub use gate::Gate;
pub use once::{Hit, Stepper};
pub use pair::{Pair, Partner, serve};
