//! Children that do not outlive the part of a task that has started them.
//!
//! **Imports**: a task's view of its process, and the task as a process. From the bottom up: the
//! nursery, which waits for all children; groups, which take results; sets, whose children may
//! fail.

mod group;
mod nursery;
mod set;
mod task_error;

pub use self::group::{Group, ScopedTask};
#[cfg(feature = "sched")]
pub(crate) use self::nursery::METHOD;
pub use self::nursery::Scope;
pub use self::set::TaskSet;
pub use self::task_error::{TaskError, TaskId};
