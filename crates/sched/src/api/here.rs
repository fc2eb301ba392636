//! What this thread is in the middle of, for crates that add things to wait for.

use crate::api::handle::Handle;
use crate::base::clock::{Clock, MonotonicClock};
use crate::core::local;
use crate::probe::{Decide, Decider};
use ganger_proc_api::{Context, Pid};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The process whose turn this thread is in.
#[must_use]
pub fn pid() -> Option<Pid> {
    local::with_any(|queue| {
        let queue = queue?;
        queue.shared.running_on(queue.index)
    })
}

/// The context of the process whose turn this thread is in. O(1).
#[must_use]
pub fn context() -> Option<Context> {
    local::own_process().map(|task| Context::new(task))
}

/// The same, and the number of its scheduler: see [`Handle::number`].
#[must_use]
pub fn process() -> Option<(Pid, u64)> {
    local::with_any(|queue| {
        let queue = queue?;
        let pid = queue.shared.running_on(queue.index)?;
        Some((pid, queue.shared.number))
    })
}

/// The scheduler that this thread is a worker of.
#[must_use]
pub fn scheduler() -> Option<Handle> {
    local::with_any(|queue| {
        let shared = Arc::clone(&queue?.shared);
        Some(Handle { shared })
    })
}

/// The time since some fixed moment: of the machine's monotonic clock, or of a simulation's.
#[must_use]
pub fn now() -> Duration {
    static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);
    Decider::time().unwrap_or_else(|| CLOCK.now())
}
