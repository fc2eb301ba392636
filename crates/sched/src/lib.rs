#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(not(feature = "sim"))]
#[path = "accounts_off.rs"]
mod accounts;
#[cfg(feature = "sim")]
mod accounts;
mod blocking;
mod builder;
mod cell;
#[cfg(not(feature = "check"))]
#[path = "check_off.rs"]
mod check;
mod clock;
mod commands;
mod config;
mod contain;
mod core;
mod delivery;
mod dispatch;
mod dump;
mod exit_slot;
mod factories;
mod finish;
mod forced;
mod frames;
mod handle;
mod home;
mod idle;
mod lanes;
mod late;
mod local;
mod long_steps;
mod names;
mod nodes;
mod outstanding;
mod pool;
mod process_handle;
mod progress;
mod registry;
mod room;
mod routing;
mod run;
mod scheduler;
mod send_all;
mod sending;
mod shared;
mod shown;
mod slots;
mod small_box;
mod state;
mod stats;
#[cfg(any(all(test, not(loom)), feature = "internals"))]
mod still;
mod stop;
mod submit;
mod threads;
mod token;
mod turns;
mod upgrade;
mod waiters;
mod watchers;
mod worker;
mod worker_slots;

#[cfg(feature = "check")]
#[doc(hidden)]
pub mod check;
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals;
#[cfg(test)]
mod models;
#[cfg(feature = "sim")]
#[doc(hidden)]
pub mod sim;

pub use builder::Builder;
pub use commands::{CommandRegistry, RegisterError, RegisterErrorKind};
pub use config::BuildError;
pub use dump::{Dump, ProcessDump, WorkerDump};
pub use factories::{Factory, FactoryError};
pub use ganger_os::Pinning;
pub use ganger_proc_api::NotFound;
pub use handle::{Handle, ProcessInfo, UpgradeRefused, UpgradeRefusedKind, WeakHandle};
pub use long_steps::{LongStep, LongStepKind};
pub use process_handle::{Address, ProcessHandle};
pub use scheduler::{Scheduler, StartError};
pub use send_all::SendAllError;
pub use sending::SendAsync;
pub use state::ProcessState;
pub use stats::{Stats, WorkerStats};
pub use stop::{StopError, StopReport};

/// A process, shared by registry and handles.
type Task = std::sync::Arc<cell::ProcessCell>;
