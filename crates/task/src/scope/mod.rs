//! Children of a part of a task: the part ends after all of them.
//!
//! **Imports**: a task's view of its process, and tasks as processes. From the bottom up: the
//! nursery waits for all children, groups take results, and the children of sets may fail.

mod group;
mod nursery;
mod set;
mod task_error;

pub use self::group::{Group, ScopedTask};
pub use self::nursery::Scope;
pub use self::set::TaskSet;
pub use self::task_error::{TaskError, TaskId};
