//! The models of what this crate synchronises with.
#![allow(missing_docs)]

mod loom_parker;
mod loom_sharded_count;
mod loom_try_lock;
