#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "sim")]
mod accounts;
mod api;
mod base;
mod blocking;
mod core;
mod exits;
mod handlers;
mod limits;
#[cfg(any(all(test, not(ganger_loom)), feature = "internals"))]
mod noop_process;
mod policy;
mod probe;
mod process;
mod progress;
mod queues;
mod send;
mod stop;
mod turn;
mod worker;

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

/// What this thread is in the middle of.
#[doc(hidden)]
pub mod here {
    pub use crate::api::here::{context, now, pid, process, scheduler};
}

/// What a process can do through its context, as commands.
pub mod commands {
    #[doc(inline)]
    pub use crate::api::standard::{
        Cancel, Demonitor, Exec, Monitor, Send, Spawn, Terminate, own_command,
    };
}

pub use api::builder::{Builder, Built};
#[doc(hidden)]
pub use api::call::CALLS_ITSELF;
pub use api::call::{Answer, Call, CallRefused};
pub use api::dump::{Dump, ProcessDump, WorkerDump};
pub use api::exit_actions::ExitActionError;
pub use api::handle::{Handle, ProcessInfo, UpgradeRefused, UpgradeRefusedKind, WeakHandle};
#[doc(hidden)]
pub use api::hash_key::HashKey;
pub use api::process_handle::{Address, ProcessHandle};
pub use api::scheduler::{Scheduler, StartError};
pub use api::send_all::SendAllError;
pub use api::sending::SendAsync;
pub use api::spawner::Spawner;
pub use api::system_send::{SystemEvent, SystemSendError};
pub use api::typed::{ContextExt, Recipient, WrongAddress};
#[doc(hidden)]
pub use api::waits::{choose, may_block};
pub use base::clock::Instant;
pub use base::config::BuildError;
pub use base::dead_letters::{DeadLetter, DeadLetters, DeadReason};
pub use base::failures::{Failure, FailureReport};
pub use base::long_steps::{LongStep, LongStepKind};
pub use base::stats::{Stats, WorkerStats};
pub use core::driver::Driver;
#[doc(hidden)]
pub use core::lent_context::LentWaker;
pub use core::sources::{Alarm, Seat, Source};
pub use ganger_os::Pinning;
pub use ganger_proc_api::NotFound;
pub use handlers::commands::{CommandRegistry, RegisterError, RegisterErrorKind};
pub use handlers::factories::{Factory, FactoryError};
pub use process::exit_action::{ExitAction, ExitKey};
pub use process::exit_signal::{Arrived, ExitSignal};
#[doc(hidden)]
pub use process::process_box::Pinned;
pub use process::state::ProcessState;
pub use progress::report::{NotStarted, StopError, StopReport, StoppedProcess};
