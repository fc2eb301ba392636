//! The thread that supervises a stop, so the caller's work does not grow with the number of
//! processes.
//!
//! The supervisor ends the waits of senders, cancels all processes, terminates the remaining ones
//! at the deadline, and starts reapers while a queued process finds no worker. A process ends by
//! calling users' code, which may not return, as a waker may. So the supervisor itself calls
//! neither, unless the system refuses it another thread.

use super::queued::on_another_thread;
use super::reapers::Supervisor;
use crate::base::clock::Deadline;
use crate::base::contain::{contain_and_report, log};
use crate::runtime::frames::{self, Frame};
use crate::runtime::shared::Shared;
use crate::runtime::threads;
use crate::runtime::token::Token;
use ganger_sync::fence;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tracing::Level;

/// How long the supervisor waits after a look at the queues.
const INTERVAL: Duration = Duration::from_millis(1);
/// The longest wait, when all reapers are stuck and the supervisor can do nothing.
const LONGEST: Duration = Duration::from_millis(100);

/// Starts the thread. Returns whether the system granted it.
#[must_use]
pub(super) fn start(shared: &Arc<Shared>) -> bool {
    let builder = threads::builder(shared, "supervisor");
    let started = threads::spawn(builder, shared, |shared| {
        frames::within(&**shared, Frame::Supervisor, || supervise(shared));
    });
    if let Err(error) = &started {
        log(Level::ERROR, || {
            tracing::error!(
                target: "ganger::sched", %error, "can't start the thread that looks after the stop"
            );
        });
    }
    started.is_ok()
}

fn supervise(shared: &Arc<Shared>) {
    // The caller of `stop` may be pinned.
    shared.worker_slots.unpin();
    let progress = &shared.shutdown;
    end_waits(shared);
    cancel_all(shared);
    // Until all have ended, or the phase changes.
    let enough = || if progress.is_over() { usize::MAX } else { 0 };
    shared.census.live.wait(enough, || Duration::MAX);
    if progress.is_terminating() {
        terminate_all(shared);
    }
    let mut supervisor = Supervisor::default();
    let mut interval = INTERVAL;
    loop {
        interval = if supervisor.supervise(shared) {
            INTERVAL
        } else {
            LONGEST.min(2 * interval)
        };
        let next = Deadline::after(interval);
        let all_ended = shared.census.live.wait(|| 0, || next.remaining());
        if all_ended || is_nothing_left(shared) {
            return;
        }
    }
}

/// Returns whether the scheduler has halted, and all remaining processes are inside a call.
fn is_nothing_left(shared: &Shared) -> bool {
    if !shared.shutdown.is_halted() {
        return false;
    }
    // Pairs with the light fence in `Shared::begin`, and does the work of `fence_after_halt`.
    fence::heavy();
    !shared.has_work()
}

/// Ends all waits of senders for room, and all suspensions. Another thread wakes the waiting
/// senders, because wakers are users' code, which may not return.
pub(crate) fn end_waits(shared: &Arc<Shared>) {
    for token in shared.interventions.end() {
        let task = token.into_task();
        // SAFETY: this thread owns the token, and the process is in no queue.
        task.release(Some(unsafe { Token::new(&task) }));
    }
    if shared.rooms.waiters.stop() {
        on_another_thread(shared, "waker", wake_waiters);
    }
}

fn wake_waiters(shared: &Arc<Shared>) {
    let counters = shared.own_counters();
    let wake = |waker: Waker| contain_and_report("waker", None, counters, || waker.wake());
    shared.rooms.waiters.wake_all(wake);
}

/// Gives every process its cancel event, as long as the deadline has not passed.
pub(crate) fn cancel_all(shared: &Shared) {
    for task in shared.census.registry.all() {
        if shared.shutdown.is_terminating() {
            return;
        }
        task.notify_of_shutdown();
    }
}

/// Lets no process take a further step: each ends when a thread takes it up.
pub(crate) fn terminate_all(shared: &Shared) {
    for task in shared.census.registry.all() {
        task.terminate();
    }
}
