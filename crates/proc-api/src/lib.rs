#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod commands;
mod events;
mod process;
mod raw;
mod routing;
mod values;

pub use commands::{
    Asked, Command, CommandError, CommandId, Completer, Completion, CompletionSink, EndCall,
    EndWatch, Handler, Reply, Tag, TypedCommand, typed_handler,
};
#[doc(hidden)]
pub use commands::{Delivery, StepsCall};
pub use events::{
    CancelReason, Event, EventQueue, Events, ExitCause, ExitNotice, ExitReason, MonitorError,
    UpgradeError, Withdrawal,
};
#[doc(hidden)]
pub use events::{EventCursor, EventNode};
#[doc(hidden)]
pub use process::in_box;
pub use process::{
    Actor, ActorFn, ActorProcess, CancelSignal, CancelToken, Context, ContextBackend, DrainYields,
    Lifecycle, NotFound, Outcome, Process, RegisterNameError, RegisterNameErrorKind, StepOutput,
    StepResult, SubmitError, SubmitErrorKind, UnknownMethod, UpgradeRequest, UpgradeTarget, Yield,
    actor_fn, process_fn,
};
pub use raw::{Exclusive, Kind};
/// For receivers that pass envelopes on: a scheduler, a router, a node.
#[doc(hidden)]
pub use routing::Hop;
pub use routing::{EnvelopeReceiver, ReceiverFn, receiver_fn};
pub use values::{
    BoxError, EndKind, Envelope, HostName, Instant, InternError, IntoPayloads, MAX_INLINE_BYTES,
    MAX_INTERNED, MAX_NAME_BYTES, MAX_PARSED, MAX_SYMBOL_BYTES, Message, NameError, NameProblem,
    NodeName, ParsePidError, Payload, Payloads, Pid, PidProblem, SendError, SendErrorKind, Symbol,
    TypePair, WrongType,
};

/// `bytes::Bytes`, which [`Payload`] carries.
pub use bytes::Bytes;
