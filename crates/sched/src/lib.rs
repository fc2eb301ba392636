#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "sim")]
mod accounts;
mod api;
mod base;
mod blocking;
mod config;
mod exits;
mod handlers;
mod limits;
#[cfg(all(test, not(ganger_loom)))]
mod noop_process;
#[cfg(feature = "observe")]
mod observe;
mod policy;
mod probe;
mod process;
mod progress;
mod queues;
mod reports;
mod runtime;
mod send;
mod stop;
mod submit;
mod turn;
mod worker;

#[cfg(feature = "check")]
mod check;
#[cfg(test)]
mod models;
#[cfg(feature = "sim")]
mod sim;

/// Items for the crates above this one, and not for programs: without any promise.
#[doc(hidden)]
pub mod internal {
    pub use crate::api::call::CALLS_ITSELF;
    pub use crate::api::carried::Carried;
    pub use crate::api::internals::{AddressInternals, Around, ContextInternals, HandleInternals};
    pub use crate::api::into_process::TaskContext;
    pub use crate::api::standard::own_command;
    pub use crate::process::process_box::Unstarted;
    pub use crate::runtime::hash_key::HashKey;
    pub use crate::runtime::here::{choose, may_block};
    pub use crate::runtime::lent_context::{LentWaker, is_process_waker, process_of};

    /// The carrier between the schedulers of a simulation.
    pub mod carrier {
        pub use crate::api::carrier::{Arrival, Carrier, Change};
    }

    /// Promises checked while a scheduler runs.
    #[cfg(feature = "check")]
    pub mod check {
        pub use crate::check::*;
    }

    /// Workers without threads, which move on request.
    #[cfg(feature = "sim")]
    pub mod sim {
        pub use crate::sim::*;
    }

    /// The process and the scheduler of this thread.
    pub mod here {
        pub use crate::api::handle::here::scheduler;
        pub use crate::runtime::here::{context, now, pid, process, simulated, watch};
    }
}

/// Replies, addresses and PIDs inside of messages to other nodes: for crates that connect these.
/// [`ganger_proc_api::crossing`] has the protocol.
#[cfg(feature = "serde")]
pub mod crossing {
    pub use crate::api::crossing::{
        Answers, FarReply, Inherited, converted, decode, drop_refused, encode,
    };
    pub use ganger_proc_api::crossing::{Incoming, Outgoing, Replies, Taken};
}

/// The calls of a context, as commands.
pub mod commands {
    #[doc(inline)]
    pub use crate::api::standard::{Cancel, Demonitor, Exec, Monitor, Send, Spawn, Terminate};
}

pub use api::builder::Builder;
pub use api::call::{Answer, Call, CallRefused};
pub use api::dump::{Dump, ProcessDump, WorkerDump};
pub use api::handle::{Handle, ProcessInfo, UpgradeRefused, UpgradeRefusedKind, WeakHandle};
#[cfg(feature = "signals")]
pub use api::interrupt::RunError;
#[cfg(feature = "observe")]
pub use api::interventions::{InspectPanicked, InterventionError};
pub use api::into_process::{IntoProcess, OfActor, OfProcess, OfTask, Startable};
pub use api::process_handle::{Address, ProcessHandle};
pub use api::remote::RemoteError;
pub use api::scheduler::{Scheduler, StartError};
pub use api::sending::SendAsync;
pub use api::spawner::Spawner;
pub use api::step_looks::{StepLooks, StepLooksRefused, StepStack};
pub use api::typed::{ContextExt, Recipient, WrongAddress};
#[cfg(feature = "observe")]
pub use base::level::{NotAllowed, Observe};
#[cfg(feature = "observe")]
pub use base::recorder::Recorder;
#[cfg(feature = "observe")]
pub use base::shares::WorkerTimes;
pub use base::stats::{Stats, WorkerStats};
#[cfg(feature = "observe")]
pub use base::tracer::{Cause, StepTracer, TracedStep};
pub use config::BuildError;
pub use ganger_os::{Function, Functions, Pinning};
pub use ganger_proc_api::{Instant, NotFound};
pub use ganger_time::{Timer, TimerStats, Timers};
pub use handlers::commands::{CommandRegistry, RegisterError, RegisterErrorKind};
pub use handlers::factories::{Factory, FactoryError};
#[cfg(feature = "observe")]
pub use observe::{
    Distributions, Marks, OfType, ProcessCounts, ProcessLook, Recording, Wait, Watchers, mark,
};
pub use process::exit_action::{ExitAction, ExitKey, Watcher};
pub use process::exit_signal::{Arrived, ExitSignal};
pub use process::remote::{Remote, RemoteLink};
pub use process::state::ProcessState;
pub use progress::report::{NotStarted, StopError, StopReport};
pub use progress::stopped::StoppedProcess;
pub use reports::dead_letters::{DeadLetter, DeadLetters, DeadReason};
pub use reports::failures::{Failure, FailureReport};
pub use reports::life::{LifeChange, LifeEvent, LifeWatch, SupervisorChange};
pub use reports::long_steps::{LongStep, LongStepKind};
pub use runtime::driver::Driver;
#[cfg(feature = "observe")]
pub use runtime::interventions::Suspended;
pub use send::exit_requests::ExitActionError;
pub use send::lots::SendAllError;
pub use send::system::{SystemEvent, SystemSendError};
