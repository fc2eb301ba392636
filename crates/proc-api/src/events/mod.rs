//! What happens to a process: the events that its steps take, and its end.
//!
//! **Promises.** An [`Event`] is no larger than a message. A step takes events by value and in
//! order, and what it leaves stays in order.
//!
//! **Imports.** `commands`, `values` and `raw`.

mod cancel;
mod event;
mod exit;
mod exit_notice;
mod queue;

pub use cancel::CancelReason;
pub use event::Event;
pub use exit::{ExitReason, UpgradeError};
pub use exit_notice::{ExitCause, ExitNotice, MonitorError, Withdrawal};
pub use queue::{EventCursor, EventNode, EventQueue, Events};
