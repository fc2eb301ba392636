//! The facade: its runtime, its errors, its example programs.

#[cfg(feature = "relay")]
mod bank;
mod errors;
mod first_programs;
#[cfg(feature = "relay")]
mod in_front;
mod supervisor;
#[cfg(feature = "relay")]
mod support;
mod tasks_with_timers;
#[cfg(feature = "relay")]
mod two_nodes;
mod wordfreq;
