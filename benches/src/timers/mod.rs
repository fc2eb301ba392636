//! Timers side by side: a trait, an implementation for each, and workloads that are generic over
//! the trait. All figures are the running time of the thread.
//!
//! The program is `cargo bench -p ganger-benches --bench peers`.

mod peers;
mod workloads;

pub use peers::{Ganger, Hashed, Sorted, Timers, Tokio};
pub use workloads::contests;
