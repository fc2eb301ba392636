//! The events that the steps of a process take, and its end.
//!
//! **Promises.** An [`Event`] is no larger than a message. A step takes events by value and in
//! order, and the events that it leaves stay in order.
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
