#![doc = include_str!("../README.md")]

mod choices;
mod failure;
mod faults;
mod network;
mod outside;
mod plan;
mod quiet;
mod registering;
mod rt;
mod shrink;
mod shutdown;
mod sim;
mod strategy;
mod timers;
mod trace;
mod watchdog;

pub use failure::FailedRun;
pub use faults::{Faults, JUMP, LATE, MOVES};
pub use rt::{Rt, TURN};
pub use sim::{Explored, Report, Sim};
pub use strategy::Strategy;
pub use timers::SimClock;
pub use trace::Trace;
