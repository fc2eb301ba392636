//! The facade: its runtime, its errors, its example programs.

mod as_users_write;
mod bank;
#[cfg(feature = "relay")]
mod circles;
#[cfg(feature = "relay")]
mod errors;
#[cfg(feature = "cluster")]
mod far_pool;
mod first_programs;
#[cfg(all(feature = "lock", feature = "observe", feature = "signals"))]
mod observed;
mod pipeline;
mod pool;
#[cfg(feature = "relay")]
mod support;
mod tasks_with_timers;
mod tree;
#[cfg(feature = "relay")]
mod two_nodes;
