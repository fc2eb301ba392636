#![doc = include_str!("../README.md")]

pub mod chance;
pub mod ledger;
pub mod load;
pub mod rounds;
pub mod watch;

mod environment;
mod panic;

pub use ledger::{Item, Ledger};
pub use load::{Kind, Load};
pub use panic::message;
pub use rounds::{Plan, Tally};
pub use watch::{Doing, Watch};
