//! The registrations of users: handlers of commands, factories of upgrades, names of processes.
//!
//! **Promise.** A worker looks a handler up without a lock.
//!
//! **Imports.** The folders from `base` to `config` (`docs/ARCHITECTURE.md`).

pub(crate) mod calls;
pub(crate) mod commands;
pub(crate) mod factories;
pub(crate) mod names;
