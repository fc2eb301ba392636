//! The models of what this crate synchronises with.
#![allow(missing_docs)]

mod loom_parker;
