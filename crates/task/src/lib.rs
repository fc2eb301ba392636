#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(feature = "sched")]
mod answers;
#[cfg(feature = "sched")]
mod blocking;
mod cx;
mod error;
mod lone;
mod name;
#[allow(unsafe_code, reason = "a future is pinned in its process")]
mod process;
mod scope;
#[allow(unsafe_code, reason = "a step is lent to the waits inside of it")]
mod step;
#[cfg(feature = "sched")]
mod ticks;
mod wait;
mod waits;

#[cfg(feature = "sched")]
pub use answers::TaskExt;
pub use cx::Cx;
pub use error::{ChildError, ChildLost, WaitError};
pub use process::{TaskOutput, process};
pub use scope::{Group, Scope, ScopedTask, TaskError, TaskId, TaskSet};
#[cfg(feature = "sched")]
pub use ticks::Ticks;
pub use wait::{
    AnswerWait, Any, Cancelled, Either, Either3, Either4, ExitWait, Join, Recv, Select, Shielded,
    Timeout, UntilCancelled, Wanted, Where, YieldNow,
};
