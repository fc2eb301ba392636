//! The processes that the benchmarks of the scheduler run, and the gate that they report to.
//!
//! The benchmarks themselves are in the folder `benches`: `cargo bench -p ganger-benches`.

pub mod deque;

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
