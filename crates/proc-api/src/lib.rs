#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod commands;
#[cfg(feature = "serde")]
pub mod crossing;
mod events;
mod process;
mod raw;
mod routing;
mod values;

pub use commands::{
    Asked, Command, CommandError, CommandId, Completer, Completion, CompletionSink, EndCall,
    EndWatch, Handler, Reply, Tag, TypedCommand, Yield, typed_handler,
};
pub use events::{
    CancelReason, Event, EventQueue, Events, ExitCause, ExitNotice, ExitReason, MonitorError,
    UpgradeError, Withdrawal,
};
pub use process::{
    Actor, ActorFn, ActorProcess, CancelSignal, CancelToken, Context, ContextBackend, DrainYields,
    Lifecycle, NotFound, Outcome, Process, RegisterNameError, RegisterNameErrorKind, StepOutput,
    StepResult, SubmitError, SubmitErrorKind, UnknownMethod, UpgradeRequest, UpgradeTarget,
    actor_fn, process_fn,
};
pub use raw::{Exclusive, Kind};
pub use routing::{EnvelopeReceiver, ReceiverFn, receiver_fn};
pub use values::{
    BoxError, EndKind, Envelope, HostName, Instant, InternError, IntoPayloads, MAX_INLINE_BYTES,
    MAX_INTERNED, MAX_NAME_BYTES, MAX_PARSED, MAX_SYMBOL_BYTES, Message, NameError, NameProblem,
    NodeName, ParsePidError, Payload, Payloads, Pid, PidProblem, SendError, SendErrorKind, Symbol,
    TypeName, TypePair, WrongType,
};

/// `bytes::Bytes`, the byte string of a [`Payload`].
pub use bytes::Bytes;

/// Items for schedulers and routers, without any promise; processes need none of them.
#[doc(hidden)]
pub mod internal {
    pub use crate::commands::{Delivery, StepsCall};
    pub use crate::events::{EventCursor, EventNode};
    pub use crate::process::{RunnerOutput, in_box};
    pub use crate::raw::{First, Others, join};
    pub use crate::routing::Hop;
}
