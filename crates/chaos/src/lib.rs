#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod account;
mod datagrams;
mod faults;
mod node;
mod plan;
mod program;
mod proxy;
mod run;

pub use account::Tally;
pub use datagrams::Datagrams;
pub use faults::{Faults, Way};
pub use node::{Place, node};
pub use plan::{Action, Plan};
pub use proxy::Proxy;
pub use run::{Broker, Front, Setup, run, seconds, seed};
