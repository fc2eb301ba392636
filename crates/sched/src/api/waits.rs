//! For crates whose processes wait for each other in ways of their own, such as channels.

use crate::core::local::{self, LocalQueue};
use crate::probe::{Decide, Decider};
use ganger_sync::is_driving;

/// Whether this thread may wait for a process: it is no worker, or is inside of
/// [`Context::blocking`](ganger_proc_api::Context::blocking). It is not in a driver, either.
///
/// # Panics
/// In a simulation, whose only thread it is: `what` would wait, and `instead` is to be called.
#[doc(hidden)]
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

/// One of so many, by the seed of the simulation that this thread is in; `what` says what for.
#[doc(hidden)]
#[must_use]
pub fn choose(what: &'static str, of: usize) -> Option<usize> {
    Decider::choose(what, of)
}
