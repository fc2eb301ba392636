//! Atomics: `std`'s, or loom's under `--cfg loom`.

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
// Not every target has it, and the mpsc crate does not need it.
#[cfg(all(not(loom), target_has_atomic = "64"))]
pub use std::sync::atomic::AtomicU64;
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
};
