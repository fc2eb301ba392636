//! The process of this thread's turn, and whether the thread may wait: for crates that add things
//! to wait for, such as channels.

use crate::base::clock::{Clock, MonotonicClock};
use crate::probe::{Decide, Decider};
use crate::process::state::ProcessState;
use crate::runtime::cell::Task;
use crate::runtime::local::{self, LocalQueue};
use ganger_proc_api::{Context, Pid};
use ganger_sync::is_driving;
use ganger_wait::watch::{self, Holds, Surroundings, Watching};
use std::cell::Cell;
use std::ptr;
use std::sync::LazyLock;
use std::time::Duration;

/// Returns the process whose turn this thread is in.
#[must_use]
pub fn pid() -> Option<Pid> {
    local::with_any(|queue| {
        let queue = queue?;
        queue.shared.running_on(queue.index)
    })
}

/// Returns the context of the process whose turn this thread is in. O(1).
#[must_use]
pub fn context() -> Option<Context> {
    local::own_process().map(|task| Context::new(task))
}

/// Returns the process whose turn this thread is in, and the number of its scheduler: see
/// [`Handle::number`](crate::Handle::number).
#[must_use]
pub fn process() -> Option<(Pid, u64)> {
    local::with_any(|queue| {
        let queue = queue?;
        let pid = queue.shared.running_on(queue.index)?;
        Some((pid, queue.shared.number))
    })
}

/// Returns the time since some fixed moment: of the machine's monotonic clock, or of a
/// simulation's.
#[must_use]
pub fn now() -> Duration {
    static CLOCK: LazyLock<MonotonicClock> = LazyLock::new(MonotonicClock::new);
    Decider::time().unwrap_or_else(|| CLOCK.now())
}

/// Returns the time of this thread's simulation, if it is in one.
#[must_use]
pub fn simulated() -> Option<Duration> {
    Decider::time()
}

/// Has the waits of the program known, until the result is dropped: see [`watch`].
pub fn watch() -> Watching {
    watch::begin_in(Surroundings { process, now, turn })
}

thread_local! {
    /// The place of the last process whose turn has been marked on this thread, and its mark.
    static MARKED: Cell<(usize, u64)> = const { Cell::new((0, 0)) };
}

/// Returns the mark of the turn that this thread is in: no later turn of the process has it.
fn turn() -> Option<u64> {
    local::own_process().map(|task| mark_of(&task))
}

fn mark_of(task: &Task) -> u64 {
    let (place, mark) = (ptr::from_ref(&**task).addr(), task.about.turn_mark());
    if MARKED.get() == (place, mark) {
        return mark;
    }
    let mark = task.about.mark_turn();
    MARKED.set((place, mark));
    mark
}

/// Says whether the process of this thread's turn waits since this turn, and for no command.
pub(crate) fn holds() -> Option<Holds> {
    let task = local::own_process()?;
    let mark = mark_of(&task);
    Some(Box::new(move || {
        // With a command outstanding, such as a sleep, the process waits for that, too.
        task.state.snapshot().state() == ProcessState::Idle && task.about.turn_mark() == mark
    }))
}

/// Returns whether this thread may wait for a process: it is no worker, or is inside of
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
