//! Loom models of the table.
#![allow(missing_docs)]

mod loom_slots;
