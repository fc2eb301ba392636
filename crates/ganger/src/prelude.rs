//! The names for a first program: `use ganger::prelude::*;`.
//!
//! Traits come without their names: the prelude brings their methods alone. All other items are
//! imported by their paths, such as `ganger::SendError` or `ganger::link::Group`.

#[doc(no_inline)]
pub use crate::{
    Actor, BoxError, CancelReason, Completion, Context, Event, Events, ExitReason, Message,
    Payload, Pid, Process, Reply, StepOutput, StepResult, Tag, TypedCommand, actor_fn, process_fn,
};
#[doc(no_inline)]
#[cfg(feature = "sched")]
pub use crate::{Address, Call, ContextExt as _, Handle, ProcessHandle, Recipient, Scheduler};
#[doc(no_inline)]
#[cfg(feature = "again")]
pub use ganger_again::RetryExt as _;
#[doc(no_inline)]
#[cfg(feature = "keyed")]
pub use ganger_keyed::Kinds as _;
#[doc(no_inline)]
#[cfg(feature = "link")]
pub use ganger_link::{LinkContext as _, LinkSpawner as _, Registry as _};
#[doc(no_inline)]
#[cfg(feature = "supervise")]
pub use ganger_supervise::{ChildSpec, Pool, Restart, Supervisor};
#[doc(no_inline)]
#[cfg(feature = "task")]
pub use ganger_task::{Cx, TaskExt as _, WaitError};
