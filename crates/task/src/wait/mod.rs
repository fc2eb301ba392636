//! The waits of a task, as futures: for a single event, around other futures, and for several.
//!
//! **Imports**: the step of a task, and its table of waits.

mod answer;
mod around;
mod combine;
mod exit;
mod recv;
mod yield_now;

pub use self::answer::AnswerWait;
pub use self::around::{Cancelled, Shielded, Timeout, UntilCancelled};
pub use self::combine::{Either, Either3, Either4, Join, Select};
pub use self::exit::ExitWait;
#[cfg(feature = "sched")]
pub(crate) use self::exit::HasPid;
pub use self::recv::{Any, Recv, Wanted, Where};
pub use self::yield_now::YieldNow;
