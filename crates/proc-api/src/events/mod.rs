//! What happens to a process: the events that its steps take, and its end.
//!
//! **Promises.** An [`Event`] is no larger than a message. A step takes events by value and in
//! order, and what it leaves stays in order.
//!
//! **Imports.** `commands`, `values` and `raw`.

mod event;
mod exit;
mod exit_notice;
mod queue;

pub use crate::values::{CancelReason, ExitCause};
pub use event::Event;
pub use exit::{ExitReason, UpgradeError};
pub use exit_notice::{ExitNotice, MonitorError, Withdrawal};
pub use queue::{EventCursor, EventNode, EventQueue, Events};
