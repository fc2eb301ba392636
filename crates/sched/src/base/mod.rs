//! What all layers use: the clock, counters, and the containment of panics.
//!
//! **What it promises.** No function here blocks for another thread.
//!
//! **What it may import.** No folder of this crate.

pub(crate) mod clock;
pub(crate) mod contain;
pub(crate) mod stats;
