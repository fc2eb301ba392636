#![doc = include_str!("../README.md")]

mod backend;
mod cancel;
mod command;
mod context;
mod event;
mod events;
mod exclusive;
mod exit;
mod handler;
mod interner;
mod lent;
mod lifecycle;
mod monitor;
mod name;
mod named;
mod output;
mod package;
mod payload;
mod payloads;
mod pid;
mod placed;
mod process;
mod submit_error;
mod symbol;

pub use backend::{ContextBackend, NotFound};
pub use cancel::{CancelReason, CancelToken};
pub use command::{Command, CommandError, CommandId, Tag};
pub use context::ProcessContext;
pub use event::{Completion, Event};
pub use events::{EventQueue, Events};
pub use exclusive::Exclusive;
pub use exit::{ExitReason, UpgradeError};
pub use handler::{Completer, CompletionSink, Handler};
pub use interner::MAX_INTERNED;
#[doc(hidden)]
pub use lent::{Lent, Link};
pub use lifecycle::Lifecycle;
pub use monitor::{ExitCause, ExitNotice, MonitorError};
pub use name::{HostName, MAX_NAME_BYTES, NameError, NameProblem, NodeName};
pub use named::{RegisterNameError, RegisterNameErrorKind};
pub use output::{DrainYields, Outcome, StepOutput, Yield};
pub use package::{Message, Package, SendError, SendErrorKind};
pub use payload::{MAX_INLINE_BYTES, Payload};
pub use payloads::Payloads;
pub use pid::{ParsePidError, Pid, PidProblem};
pub use placed::Placed;
pub use process::{BoxError, Process, UnknownMethod, UpgradeRequest, UpgradeTarget};
pub use submit_error::{SubmitError, SubmitErrorKind};
pub use symbol::{InternError, Symbol};

/// `bytes::Bytes`, which [`Payload`] carries.
pub use bytes::Bytes;
