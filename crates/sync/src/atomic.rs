//! Atomics: `std`'s, or loom's under `--cfg ganger_loom`.

#[cfg(ganger_loom)]
mod whole;

#[cfg(ganger_loom)]
pub use loom::sync::atomic::{Ordering, fence};
// Not every target has this type, and the mpsc crate does not need it.
#[cfg(all(not(ganger_loom), target_has_atomic = "64"))]
pub use std::sync::atomic::AtomicU64;
#[cfg(not(ganger_loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
};
#[cfg(ganger_loom)]
pub use whole::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
