//! What users register: the handlers of commands, and the factories of upgrades.
//!
//! **What it promises.** A worker looks a handler up without a lock.
//!
//! **What it may import.** `base`.

pub(crate) mod calls;
pub(crate) mod commands;
pub(crate) mod factories;
