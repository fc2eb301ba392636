//! Channels side by side: one trait, an implementation for each, and workloads that are generic
//! over it. Ganger's channel is used by tasks of Ganger, the others by tasks of tokio, both with
//! two workers. All figures are of the time that has passed.
//!
//! The program is `cargo bench -p ganger-benches --bench channel_peers`.

mod go;
mod peers;
mod workloads;

pub use peers::{AsyncChannel, Channel, Flume, Ganger, Kanal, OnGanger, OnTokio, Runtime, Tokio};
pub use workloads::{PEERS, contests};
