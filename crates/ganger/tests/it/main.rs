//! The facade: its runtime, its errors, its example programs.

mod as_users_write;
#[cfg(feature = "relay")]
mod bank;
mod errors;
mod first_programs;
#[cfg(feature = "relay")]
mod in_front;
mod pipeline;
#[cfg(feature = "relay")]
mod pool;
mod support;
mod tasks_with_timers;
mod tree;
#[cfg(feature = "relay")]
mod two_nodes;
