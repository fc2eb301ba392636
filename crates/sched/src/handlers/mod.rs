//! What users register: handlers of commands, factories of upgrades, names of processes.
//!
//! **What it promises.** A worker looks a handler up without a lock.
//!
//! **What it may import.** The folders from `base` to `config` (`docs/ARCHITECTURE.md`).

pub(crate) mod calls;
pub(crate) mod commands;
pub(crate) mod factories;
pub(crate) mod names;
