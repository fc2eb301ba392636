//! Timers side by side: one trait, an implementation for each, and workloads that are generic over
//! it. All figures are of the time that the thread has run.
//!
//! The program is `cargo bench -p ganger-benches --bench wheel_peers`.

mod peers;
mod workloads;

pub use peers::{Ganger, Hashed, Sorted, Timers, Tokio};
pub use workloads::{PEERS, contests};
