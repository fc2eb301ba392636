//! Where ready processes wait, where idle workers sleep, and where processes are found.
//!
//! **What it promises.** Each queue takes and gives from any thread; no wake-up gets lost beside
//! a sleeper (G2).
//!
//! **What it may import.** The folders from `base` to `progress` (`docs/ARCHITECTURE.md`).

pub(crate) mod closing_inbox;
pub(crate) mod idle;
pub(crate) mod timer_waiter;
pub(crate) mod waiter;
