#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod plan;

pub use plan::{AutoShutdown, BackOff, Restart, StopTime, Strategy};
