//! Locks side by side: one trait, an implementation for each, and workloads that are generic over
//! it. Ganger's locks are used by tasks of Ganger, tokio's by tasks of tokio, both with two
//! workers. All figures are of the time that has passed.
//!
//! The program is `cargo bench -p ganger-benches --bench lock_peers`.

mod go;
mod peers;
mod workloads;

pub use peers::{Ganger, Locks, Tokio};
pub use workloads::{PEERS, contests};
