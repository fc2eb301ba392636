//! The models of what a table synchronises.
#![allow(missing_docs)]

mod loom_slots;
