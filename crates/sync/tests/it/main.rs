//! Models of this crate's protocols.
#![allow(missing_docs)]

mod loom_parker;
mod loom_sharded_count;
mod loom_try_lock;
#[cfg(ganger_loom)]
mod loom_whole;
