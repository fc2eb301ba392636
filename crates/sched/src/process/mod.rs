//! The parts of a process without knowledge of a scheduler.
//!
//! **Promise.** One owner at a time runs a process, and its exit reason is taken once (P12, G1).
//!
//! **Imports.** The folders from `base` to `limits` (`docs/ARCHITECTURE.md`).

pub(crate) mod about;
pub(crate) mod accepts;
pub(crate) mod asked;
pub(crate) mod cancel_signals;
pub(crate) mod dropped;
pub(crate) mod exit_action;
pub(crate) mod exit_actions;
pub(crate) mod exit_signal;
pub(crate) mod exit_slot;
pub(crate) mod failed;
pub(crate) mod origin;
pub(crate) mod outstanding;
pub(crate) mod process_box;
pub(crate) mod remote;
pub(crate) mod revoked;
pub(crate) mod state;
