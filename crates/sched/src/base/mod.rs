//! What all layers use: the clock, counters, the settings, and the containment of panics.
//!
//! **What it promises.** No function here blocks for another thread.
//!
//! **What it may import.** No folder of this crate.

pub(crate) mod clock;
pub(crate) mod config;
pub(crate) mod contain;
pub(crate) mod dead_letters;
pub(crate) mod dropped;
pub(crate) mod failures;
pub(crate) mod frames;
pub(crate) mod long_steps;
pub(crate) mod stats;
