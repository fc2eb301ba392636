//! Ends of queued processes that no worker may take: on the calling thread or another.

use crate::probe::{Decide, Decider};
use crate::runtime::shared::Shared;
use crate::runtime::threads;
use crate::runtime::token::Token;
use crate::turn::run::Runner;
use ganger_deque::Steal;
use ganger_sync::hint;
use std::sync::Arc;

/// Calls `f`, which calls users' code, on a thread called `name`; on this thread if the system
/// refuses one.
pub(super) fn on_another_thread(shared: &Arc<Shared>, name: &str, f: fn(&Arc<Shared>)) {
    if Decider::is_driven() {
        // A simulation has no other thread.
        return f(shared);
    }
    let started = threads::spawn(threads::builder(shared, name), shared, f);
    if started.is_err() {
        f(shared);
    }
}

/// Runs the processes of all queues, until the queues are empty. After the deadline or a halt each
/// process ends.
pub(crate) fn end_queued(shared: &Arc<Shared>) {
    let mut runner = Runner::new(shared, None);
    while let Some(mut token) = take_anywhere(shared) {
        shared.stopper.reapers.count_turn();
        if shared.shutdown.is_halted() {
            // The supervisor may not have terminated this process yet.
            let task = token.into_task();
            task.terminate();
            // SAFETY: this thread owned the token, and the process is in no queue.
            token = unsafe { Token::new(&task) };
        }
        runner.run(token);
    }
}

fn take_anywhere(shared: &Shared) -> Option<Token> {
    let first = shared
        .queues
        .urgent
        .pop()
        .or_else(|| shared.queues.arrivals.pop());
    let first = first.or_else(|| shared.queues.global.pop());
    first.or_else(|| {
        shared.stealers().iter().find_map(|stealer| {
            loop {
                match stealer.steal() {
                    Steal::Success(token) => return Some(token),
                    Steal::Empty => return None,
                    Steal::Retry => hint::spin_loop(),
                }
            }
        })
    })
}
