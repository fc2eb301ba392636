//! What most programs need: `use ganger::prelude::*;`.

pub use ganger_proc_api::{
    Actor, ActorProcess, Asked, BoxError, Bytes, CancelReason, CancelToken, Command, CommandError,
    CommandId, Completer, Completion, Context, Event, Events, ExitCause, ExitNotice, ExitReason,
    Handler, HostName, Lifecycle, Message, NodeName, Outcome, Package, Payload, Payloads, Pid,
    Process, SendError, SendErrorKind, StepOutput, StepResult, SubmitError, SubmitErrorKind,
    Symbol, Tag, TypedCommand, TypedCompleter, UnknownMethod, UpgradeError, UpgradeRequest,
    WrongType, process_fn,
};
#[cfg(feature = "relay")]
pub use ganger_relay::{Mailbox, MailboxReceiver, Node, Receiver, Router};
#[cfg(feature = "sched")]
pub use ganger_sched::{
    Address, ContextExt, Handle, NotFound, Pinning, ProcessHandle, ProcessInfo, ProcessState,
    Recipient, Scheduler, SendAsync, Stats, StopError, StopReport, WeakHandle, WorkerStats,
};
#[cfg(feature = "time")]
pub use ganger_time::{
    Every, KeyedTimers, Missed, Moment, ReceiveTimeout, StateTimeout, Timer, TimerContext,
    TimerOutput, Timers,
};

#[cfg(all(feature = "sched", feature = "relay"))]
pub use crate::runtime::Runtime;
