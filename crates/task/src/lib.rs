#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

mod around;
#[cfg(feature = "sched")]
mod blocking;
mod combine;
mod cx;
mod error;
mod group;
#[cfg(feature = "tokio")]
mod in_tokio;
mod name;
#[allow(unsafe_code, reason = "a future is pinned in its process")]
mod process;
mod scope;
mod set;
#[cfg(feature = "sched")]
mod spawn;
#[allow(unsafe_code, reason = "a step is lent to the waits inside of it")]
mod step;
#[cfg(feature = "time")]
mod ticks;
mod wait;
mod waits;

pub use around::{Cancelled, Shielded, Timeout, UntilCancelled};
pub use combine::{Either, Either3, Either4, Join, Select};
pub use cx::Cx;
pub use error::{ChildError, ChildLost, TaskError, WaitError};
pub use group::{Child, Group};
#[cfg(feature = "tokio")]
pub use in_tokio::{RuntimeGone, in_tokio};
pub use process::process;
pub use scope::Scope;
pub use set::{TaskId, TaskSet};
#[cfg(feature = "sched")]
pub use spawn::{SpawnTask, SpawnTaskExt, StartTask};
#[cfg(feature = "time")]
pub use ticks::Ticks;
pub use wait::{Answer, Any, Monitor, Recv, Wanted, Where};
