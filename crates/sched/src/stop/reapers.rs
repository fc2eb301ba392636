//! The threads that end queued processes where no worker does: when all workers are stuck, and
//! after the halt.
//!
//! **Problem.** A process ends by calling users' code, which may not return. So the thread that
//! queues a process after the halt does not end it, and neither does the supervisor, which must
//! stay free. A thread for each process would be too many.
//!
//! **Protocol.**
//! 1. A *thread that queues a process* after the halt makes a full fence, and looks for queued
//!    processes. If it finds any, it starts a reaper, up to sixteen of them. A worker, which looks
//!    itself when its step is over, starts a reaper only if none exists.
//! 2. A *reaper* ends processes until the queues are empty. The reaper leaves, makes a full fence,
//!    and looks once more. If a process is queued by then, the reaper enters again.
//! 3. The *supervisor* looks now and then. The supervisor starts a reaper when a process is queued
//!    and no reaper exists, or when no reaper has begun a turn for [`PATIENCE`] looks.
//!
//! **Why nothing is left.** A process is queued before the fence of 1, and a reaper leaves before
//! the fence of 2. So either the first thread finds room for a reaper, or the leaving reaper sees
//! the process.
//!
//! Where the system refuses a thread, the thread that would have started it does its work.

use super::queued::{end_queued, on_another_thread};
use crate::base::contain::or_abort;
use crate::progress::reaper_pool::ReaperPool;
use crate::runtime::shared::Shared;
use std::sync::Arc;
use std::thread;

/// After this many looks without a turn the supervisor takes the reapers for stuck.
const PATIENCE: u32 = 5;

/// The supervisor's view of the reapers.
#[derive(Default)]
pub(super) struct Supervisor {
    turns: u64,
    /// For how many looks there have been no more turns.
    looks: u32,
}

impl Supervisor {
    /// Starts a reaper if needed. `false` if needed, and the reapers are at their limit.
    pub(super) fn supervise(&mut self, shared: &Arc<Shared>) -> bool {
        let reapers = &shared.stopper.reapers;
        let are_stuck = self.are_stuck(reapers);
        if !shared.has_work() {
            return true;
        }
        if reapers.enter_first() {
            start_entered(shared);
            return true;
        }
        if !are_stuck {
            return true;
        }
        let has_room = reapers.enter();
        if has_room {
            self.looks = 0;
            start_entered(shared);
        }
        has_room
    }

    /// Notes a look, and returns whether no reaper has begun a turn for some looks.
    fn are_stuck(&mut self, reapers: &ReaperPool) -> bool {
        let turns = reapers.turns();
        if turns == self.turns {
            self.looks += 1;
        } else {
            (self.turns, self.looks) = (turns, 0);
        }
        self.looks >= PATIENCE
    }
}

/// Has the processes queued after the halt ended. The caller has made a full fence, and may be a
/// worker.
pub(super) fn start(shared: &Arc<Shared>, is_worker: bool) {
    let reapers = &shared.stopper.reapers;
    let has_entered = if is_worker {
        reapers.enter_first()
    } else {
        reapers.enter()
    };
    if has_entered {
        start_entered(shared);
    }
}

/// Starts the thread of an entered reaper.
fn start_entered(shared: &Arc<Shared>) {
    on_another_thread(shared, "reaper", reap);
}

/// Does the work of an entered reaper.
fn reap(shared: &Arc<Shared>) {
    let is_queued = || {
        let is_queued = shared.has_work();
        if is_queued {
            // The process may count already, and be pushed in a moment.
            thread::yield_now();
        }
        is_queued
    };
    let end_all = || or_abort(|| end_queued(shared));
    shared.stopper.reapers.work(end_all, is_queued);
}
