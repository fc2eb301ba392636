//! The state machine that users write, and the contract between it and its scheduler.
//!
//! **Promises.** Nothing here runs a process: each type is half of a contract, and a scheduler
//! keeps the other half.
//!
//! **Imports.** All other folders. Inside this folder a process knows its context, and the
//! context's backend starts processes: the two know each other.

mod actor;
mod ask;
mod backend;
mod cancel_signal;
mod cancel_token;
mod context;
mod lifecycle;
mod output;
mod registered_name;
mod state_machine;
mod submit_error;
mod timers;
mod upgrade;

pub use actor::{Actor, ActorFn, ActorProcess, actor_fn};
pub use backend::{ContextBackend, NotFound};
pub use cancel_signal::CancelSignal;
pub use cancel_token::CancelToken;
pub use context::Context;
pub use lifecycle::Lifecycle;
pub use output::runner::RunnerOutput;
pub use output::{DrainYields, Outcome, StepOutput};
pub use registered_name::{RegisterNameError, RegisterNameErrorKind};
pub use state_machine::{Process, StepResult, UnknownMethod, in_box, process_fn};
pub use submit_error::{SubmitError, SubmitErrorKind};
pub use upgrade::{UpgradeRequest, UpgradeTarget};
