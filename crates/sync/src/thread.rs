//! Threads: `std`'s, or loom's under `--cfg ganger_loom`.

#[cfg(ganger_loom)]
pub use loom::thread::{JoinHandle, spawn, yield_now};
#[cfg(not(ganger_loom))]
pub use std::thread::{JoinHandle, spawn, yield_now};
