//! An engine between nodes of a single program, with faults by a seed and a clock of its own.
//!
//! The same seed and the same calls give the same deliveries. Frames move when the program moves the
//! clock, on the thread that moves it.

mod faults;
mod flight;
mod twin;

pub use faults::{Counts, Faults};
pub use twin::{Twin, TwinEngine};
