//! The facade: its runtime, its errors, its example programs.

#[cfg(feature = "relay")]
mod errors;
#[cfg(feature = "relay")]
mod in_front;
mod supervisor;
#[cfg(feature = "relay")]
mod support;
mod timer;
#[cfg(feature = "relay")]
mod two_nodes;
mod wordfreq;
