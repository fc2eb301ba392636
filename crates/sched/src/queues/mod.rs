//! Where ready processes wait, where idle workers sleep, and where processes are found.
//!
//! **Promise.** Each queue takes and gives from any thread; no wake-up gets lost while a worker
//! sleeps (G2).
//!
//! **Imports.** The folders from `base` to `progress` (`docs/ARCHITECTURE.md`).

pub(crate) mod closing_inbox;
pub(crate) mod idle;
pub(crate) mod timer_waiter;
pub(crate) mod waiter;
