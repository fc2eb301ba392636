//! The way of a message: from a PID to a mailbox, and from there to the queue of a worker.
//!
//! **Promise.** A message is delivered once, or comes back inside the error (R2).
//!
//! **Imports.** The folders from `base` to `runtime` (`docs/ARCHITECTURE.md`).

mod away;
pub(crate) mod delivery;
pub(crate) mod exit_requests;
pub(crate) mod lots;
pub(crate) mod routing;
pub(crate) mod system;
pub(crate) mod timers;
