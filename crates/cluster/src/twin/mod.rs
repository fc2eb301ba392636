//! An engine between nodes of a single program, with faults by a seed and a clock of its own.
//!
//! The same seed and the same calls give the same deliveries. Frames move when the program moves
//! the clock, on the same thread, or with the time of the program. In a simulation of several
//! machines the simulation moves the clock.

mod clock;
mod faults;
mod flight;
mod knobs;
mod simulated;

pub use clock::Running;
pub use faults::{Counts, Faults};
pub use knobs::{Twin, TwinEngine};
