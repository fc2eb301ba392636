//! A step about to block its thread: other workers take its waiting processes, before the monitor
//! notices.
//!
//! The thread decides whose worker is replaced. A step may wait for a process of another scheduler,
//! and keeps processes of its own scheduler from running.

use crate::process::dropped;
use crate::runtime::frames;
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::shared::Shared;
use ganger_proc_api::{CommandError, Pid};
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::is_driving;
use std::sync::Arc;

/// Calls `f`; the call may block. On a worker of any scheduler a spare takes its place first, when
/// processes wait and no worker is free.
pub(crate) fn block_in_place(f: &mut dyn FnMut()) {
    block_if(|_can_replace| true, f);
}

/// Blocks as [`block_in_place`] does, for a wait ended by another process. Returns `false` without
/// a call of `f` where processes wait already and no thread can take them.
pub(crate) fn block_if_replaced(f: impl FnOnce()) -> bool {
    block_if(|can_replace| can_replace, f)
}

fn block_if(may_block: impl FnOnce(bool) -> bool, f: impl FnOnce()) -> bool {
    // The process to end this wait may itself wait for one of these.
    dropped::answer(|| CommandError::Dropped);
    local::with_any(|queue| {
        // The process to end this wait may itself wait for room in this process.
        if queue.is_some()
            && let Some(own) = local::own_process()
        {
            own.release_messages(0);
        }
        // For later pushes, the monitor need not wait until it sees the thread asleep.
        let _announced = queue.map(|queue| queue.shared.worker_slots.announce(queue.index));
        let can_replace = queue.is_none_or(|queue| queue.shared.prepare_to_block(queue.index));
        let blocks = may_block(can_replace);
        if blocks {
            // Nor are completers dropped by `f` collected, as `f` may then wait for their answers.
            dropped::outside(f);
        }
        blocks
    })
}

/// Returns whether a wait on this thread for the process can end. The thread must not run the
/// process itself, nor be about to start it, and it must leave a thread that runs it.
///
/// The last thread to start can't be replaced, and so never waits. Nor does a thread in a driver,
/// because it keeps the processes that it wakes there. Nor does a thread other than a worker that
/// ends processes in a shutdown: it may be the last to end the process.
pub(crate) fn may_wait_for(shared: &Shared, pid: Pid) -> bool {
    if is_driving() || frames::ends_processes(shared) || frames::submits(shared, pid.id()) {
        return false;
    }
    local::with_any(|queue| {
        let Some(queue) = queue else { return true };
        let is_its_own = queue.is_of(shared) && queue.shared.running_on(queue.index) == Some(pid);
        !is_its_own && queue.shared.worker_slots.can_replace(queue.index)
    })
}

/// Returns whether this thread may wait for something other than a process.
pub(crate) fn may_wait() -> bool {
    let can_replace = |queue: &LocalQueue| queue.shared.worker_slots.can_replace(queue.index);
    !is_driving() && local::with_any(|queue| queue.is_none_or(can_replace))
}

impl Shared {
    /// Prepares this thread, a worker, for its block: has another thread take its waiting
    /// processes. `false` when none can.
    #[must_use]
    fn prepare_to_block(self: &Arc<Self>, worker: usize) -> bool {
        let Self {
            queues, shutdown, ..
        } = &**self;
        // After the halt no worker is replaced.
        if shutdown.is_halted() || !self.has_work() || queues.idle.notify() {
            return true;
        }
        // Ordering: SeqCst, pairs with the fence in `Idle::end_search`: either the last searcher
        // sees the waiting processes, or the look below sees the end of its search.
        fence(Ordering::SeqCst);
        let now = queues.idle.snapshot();
        let is_free = now.sleeping > 0 || now.searching > 0;
        is_free || self.replace_worker(worker, None) || self.worker_slots.is_replaced(worker)
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::runtime::frames::Frame;

    /// Refuses the wait, as the thread may be the last to end the process.
    // pins: D3, D4
    #[test]
    fn a_thread_that_ends_the_processes_of_a_scheduler_waits_for_none_of_them() {
        let scheduler = || Scheduler::builder().workers(2).max_spares(0);
        let [here, there] = [(); 2].map(|()| scheduler().build().unwrap());
        let pid = Pid::new(there.host_name(), 7);
        let may_wait = || may_wait_for(&there.shared, pid);
        let and_when_it_ends_others = || frames::within(&*there.shared, Frame::Turn, may_wait);
        assert_eq!((may_wait(), and_when_it_ends_others()), (true, false));
        // On a worker of another scheduler, which has been replaced.
        here.shared.worker_slots.mark_spare(1);
        assert!(here.shared.replace_worker(0, None));
        let queue = LocalQueue::of_first(&here.shared);
        local::enter(&queue, || {
            assert_eq!((may_wait(), and_when_it_ends_others()), (true, false));
        });
    }
}
