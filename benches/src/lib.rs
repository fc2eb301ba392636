//! The code of the benchmarks: whole workloads for schedulers, and workloads for the deque, the
//! mailbox, channels and locks, all compared with their peers.
//!
//! The benchmarks themselves are in the folder `benches`: `cargo bench -p ganger-benches`.

pub mod channels;
pub mod contest;
mod deque;
pub mod driver;
pub mod locks;
pub mod mailbox;
pub mod queues;
mod stats;
mod text;
pub mod whole;
