//! A simulated network: connections, packets, signals and deadlines as events at the seats of the
//! scheduler. To the reactor it is a second poller: it reports events by the ids of sockets.

mod events;
mod faults;
mod packets;
mod signals;
mod sockets;
mod traffic;
mod ways;

pub(crate) use events::{Sea, TimerKey, World};
pub use faults::{Faults, Site};
#[cfg_attr(not(unix), allow(unused_imports, reason = "there are no signals"))]
pub(crate) use sockets::SimSignal;
pub(crate) use sockets::{End, SimListening, SimUdp};
