//! Channels side by side: a trait, an implementation for each, and workloads that are generic over
//! the trait. Ganger's channel is used by tasks of Ganger, all others by tasks of tokio, both with
//! two workers. All figures are wall-clock times.
//!
//! The program is `cargo bench -p ganger-benches --bench peers`.

mod peers;
mod workloads;

pub use peers::{AsyncChannel, Channel, Flume, Ganger, Kanal, OnGanger, OnTokio, Runtime, Tokio};
pub use workloads::contests;
