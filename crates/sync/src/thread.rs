//! Threads: `std`'s, or loom's under `--cfg loom`.

#[cfg(loom)]
pub use loom::thread::{JoinHandle, spawn, yield_now};
#[cfg(not(loom))]
pub use std::thread::{JoinHandle, spawn, yield_now};
