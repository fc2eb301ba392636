#![doc = include_str!("../README.md")]

mod chance;
mod choices;
mod environment;
mod failure;
mod faults;
mod left;
mod lives;
mod moves;
mod network;
mod outside;
mod pace;
mod plan;
mod playable;
mod quiet;
mod registering;
mod rt;
mod seat;
mod shrink;
mod shutdown;
mod sim;
mod strategy;
mod timers;
mod trace;
mod watchdog;
mod world;

pub use failure::FailedRun;
pub use faults::{Faults, JUMP, LATE, MOVES};
pub use moves::TURN;
pub use rt::Rt;
pub use sim::{Explored, Report, Sim};
pub use strategy::Strategy;
pub use timers::SimClock;
pub use trace::Trace;
pub use world::World;

#[doc(inline)]
pub use ganger_sched::internal::carrier::{Arrival, Carrier, Change};
