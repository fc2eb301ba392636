//! Locks side by side: a trait, an implementation for each, and workloads that are generic over the
//! trait. Ganger's locks are used by tasks of Ganger, tokio's by tasks of tokio, both with two
//! workers. All figures are wall-clock times.
//!
//! The program is `cargo bench -p ganger-benches --bench peers`.

mod peers;
mod workloads;

pub use peers::{Ganger, Locks, Tokio};
pub use workloads::contests;
