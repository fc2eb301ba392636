//! The process of this thread's turn, and whether the thread may wait: for crates that add things
//! to wait for, such as channels.

use crate::base::clock::{Clock, MonotonicClock};
use crate::probe::{Decide, Decider};
use crate::runtime::local::{self, LocalQueue};
use ganger_proc_api::{Context, Pid};
use ganger_sync::is_driving;
use std::sync::LazyLock;
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

/// The same, and the number of its scheduler: see [`Handle::number`](crate::Handle::number).
#[must_use]
pub fn process() -> Option<(Pid, u64)> {
    local::with_any(|queue| {
        let queue = queue?;
        let pid = queue.shared.running_on(queue.index)?;
        Some((pid, queue.shared.number))
    })
}

/// The time since some fixed moment: of the machine's monotonic clock, or of a simulation's.
#[must_use]
pub fn now() -> Duration {
    static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);
    Decider::time().unwrap_or_else(|| CLOCK.now())
}

/// Whether this thread may wait for a process: it is no worker, or is inside of
/// [`Context::blocking`](ganger_proc_api::Context::blocking), and is not in a driver.
///
/// # Panics
/// In a simulation, whose only thread this is: `what` would wait, and the text advises `instead`.
#[must_use]
#[track_caller]
pub fn may_block(what: &str, instead: &str) -> bool {
    Decider::refuse_to_block(what, instead);
    let may_block = |queue: &LocalQueue| {
        let announcements = queue.shared.worker_slots.announcements(queue.index);
        !announcements.is_multiple_of(2)
    };
    !is_driving() && local::with_any(|queue| queue.is_none_or(may_block))
}

/// Draws a number below `of` from the seed of this thread's simulation; `what` names the purpose.
#[must_use]
pub fn choose(what: &'static str, of: usize) -> Option<usize> {
    Decider::choose(what, of)
}
