//! The calls of users: the scheduler, its builder, handles, contexts, and sends that wait.
//!
//! **Promise.** The public items of `lib.rs`. Decisions are left to the lower folders wherever
//! possible.
//!
//! **Imports.** The folders from `base` to `stop` (`docs/ARCHITECTURE.md`).

pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod carried;
pub(crate) mod carrier;
pub(crate) mod context;
#[cfg(feature = "serde")]
pub(crate) mod crossing;
pub(crate) mod dump;
pub(crate) mod exit_actions;
pub(crate) mod handle;
pub(crate) mod internals;
#[cfg(feature = "signals")]
pub(crate) mod interrupt;
#[cfg(feature = "observe")]
pub(crate) mod interventions;
pub(crate) mod into_process;
mod line;
pub(crate) mod process_handle;
pub(crate) mod register_for;
pub(crate) mod remote;
mod routed;
pub(crate) mod scheduler;
pub(crate) mod sending;
pub(crate) mod spawner;
pub(crate) mod standard;
pub(crate) mod step_looks;
pub(crate) mod system_send;
mod timers;
pub(crate) mod typed;
