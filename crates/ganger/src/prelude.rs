//! The names that most programs need: `use ganger::prelude::*;`.

#[doc(no_inline)]
pub use crate::{
    Actor, ActorProcess, Asked, BoxError, Bytes, CancelReason, CancelToken, CommandError,
    CommandId, Completer, Completion, Context, Envelope, EnvelopeReceiver, Event, Events,
    ExitCause, ExitNotice, ExitReason, Handler, HostName, Instant, Lifecycle, Message, NodeName,
    Outcome, Payload, Payloads, Pid, Process, Reply, SendError, SendErrorKind, StepOutput,
    StepResult, SubmitError, SubmitErrorKind, Symbol, Tag, TypedCommand, UnknownMethod,
    UpgradeError, UpgradeRequest, WrongType, actor_fn, process_fn,
};
#[doc(no_inline)]
#[cfg(feature = "sched")]
pub use crate::{
    Address, Answer, Call, ContextExt, FailureReport, Handle, NotFound, Pinning, ProcessHandle,
    ProcessInfo, ProcessState, Recipient, Scheduler, SendAsync, Spawner, Stats, StopError,
    StopReport, Timer, Timers, WeakHandle, WorkerStats,
};
#[doc(no_inline)]
#[cfg(feature = "relay")]
pub use crate::{ChannelHost, Inbox, Node, Router};
#[doc(no_inline)]
#[cfg(feature = "keyed")]
pub use ganger_keyed::{Keyed, KeyedAddress, KeyedError, Kinds};
#[doc(no_inline)]
#[cfg(feature = "link")]
pub use ganger_link::{
    DeadLetterLog, Delivered, Group, GroupNotice, GroupRouting, Groups, LinkContext, LinkSpawner,
    Registry, Services,
};
#[doc(no_inline)]
#[cfg(feature = "lock")]
pub use ganger_lock::{RateLimitError, RateLimiter};
#[doc(no_inline)]
#[cfg(feature = "supervise")]
pub use ganger_supervise::{
    AutoShutdown, BackOff, Batch, Breaker, ChildInfo, ChildSpec, ChildState, Overload, Poison,
    Pool, PoolError, PoolHandle, PoolRemote, Restart, ShutdownTimeout, Supervisor, Tree, TreeEnd,
    TreeEnded, TreeError, TreeHandle,
};
#[doc(no_inline)]
#[cfg(feature = "task")]
pub use ganger_task::{Cx, Either, Either3, TaskExt, TaskSet, WaitError, process};
#[doc(no_inline)]
#[cfg(feature = "sched")]
pub use ganger_time::{Interval, KeyedTimers, MissedTicks, ReceiveTimeout, StateTimeout};

#[doc(no_inline)]
#[cfg(all(feature = "sched", feature = "relay"))]
pub use crate::Runtime;
