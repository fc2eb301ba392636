//! Sockets of the system and of a simulation: connections, listeners and packets, with their
//! addresses, buffers, limits and settings.

pub(crate) mod address;
pub(crate) mod blocking;
pub(crate) mod buffer;
mod descriptor;
mod gate;
pub(crate) mod incoming;
pub(crate) mod listener;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod tcp;
pub(crate) mod udp;
#[cfg(unix)]
pub(crate) mod unix;
