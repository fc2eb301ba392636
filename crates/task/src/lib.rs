#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(feature = "sched")]
mod blocking;
mod cx;
mod error;
mod name;
#[allow(unsafe_code, reason = "a future is pinned in its process")]
mod process;
mod scope;
#[cfg(feature = "sched")]
mod spawn;
#[allow(unsafe_code, reason = "a step is lent to the waits inside of it")]
mod step;
#[cfg(feature = "sched")]
mod ticks;
mod wait;
mod waits;

pub use cx::Cx;
pub use error::{ChildError, ChildLost, WaitError};
pub use process::process;
pub use scope::{Group, Scope, ScopedTask, TaskError, TaskId, TaskSet};
#[cfg(feature = "sched")]
pub use spawn::{SpawnTask, SpawnTaskExt, StartTask};
#[cfg(feature = "sched")]
pub use ticks::Ticks;
pub use wait::{
    AnswerWait, Any, Cancelled, Either, Either3, Either4, ExitWait, Join, Recv, Select, Shielded,
    Timeout, UntilCancelled, Wanted, Where,
};
