//! The values of messages, commands and results, and the names of processes.
//!
//! **Promises.** Every type here is `Send` and `Sync`. PIDs, names and symbols are `Copy`. The
//! tables of names and symbols are bounded, and parsed texts take at most half of each.
//!
//! **Imports.** `raw`.

mod cause;
mod interner;
mod message;
mod moment;
mod name;
mod payload;
mod payloads;
mod pid;
mod symbol;
mod type_name;
mod type_pair;
mod typed;

pub use cause::{CancelReason, EndKind, ExitCause};
pub use interner::{MAX_INTERNED, MAX_PARSED};
pub use message::{Envelope, Message, SendError, SendErrorKind};
pub use moment::Instant;
pub use name::{HostName, MAX_NAME_BYTES, NameError, NameProblem, NodeName};
pub use payload::{MAX_INLINE_BYTES, Payload};
pub use payloads::{IntoPayloads, Payloads};
pub use pid::{ParsePidError, Pid, PidProblem};
pub use symbol::{InternError, MAX_SYMBOL_BYTES, Symbol};
pub use type_name::TypeName;
pub use type_pair::TypePair;
pub use typed::WrongType;

/// Any error, as processes, handlers and lifecycle hooks report it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;
