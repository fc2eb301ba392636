//! A step is about to block its thread: somebody else takes what waits, without being told by the monitor.
//!
//! Whose worker the thread is decides, not whom the step waits for: a step may wait for a process of another
//! scheduler, and keeps its own one's processes from running.

use crate::frames;
use crate::local;
use crate::shared::Shared;
use ganger_proc_api::Pid;
use ganger_sync::atomic::{Ordering, fence};
use std::sync::Arc;

/// Calls `f`, which may block. A worker of whichever scheduler makes way before that.
pub(crate) fn block(f: &mut dyn FnMut()) {
    block_if(|_has_way| true, f);
}

/// As [`block`], for who waits for something that processes do. `false`, and `f` is not called: processes wait
/// already, and nobody can take them.
pub(crate) fn block_beside_others(f: impl FnOnce()) -> bool {
    block_if(|has_way| has_way, f)
}

fn block_if(may_block: impl FnOnce(bool) -> bool, f: impl FnOnce()) -> bool {
    local::with_any(|queue| {
        // For what is pushed from now on, the monitor need not wait until it sees the thread asleep.
        let _announced = queue.map(|queue| queue.shared.crew.announce(queue.index));
        let has_way = queue.is_none_or(|queue| queue.shared.make_way(queue.index));
        let blocks = may_block(has_way);
        if blocks {
            f();
        }
        blocks
    })
}

/// Whether a wait on this thread for a process can end: it does not run the process itself, and leaves a thread
/// that does; nor has it yet to start the process. The thread that was started last finds no relief, and so is never one that waits. Nor is one that is no
/// worker and ends processes in a shutdown: there may be none left to end the one that it would wait for.
pub(crate) fn may_wait_for(shared: &Shared, pid: Pid) -> bool {
    if frames::ends_processes(shared) || frames::submits(shared, pid.id()) {
        return false;
    }
    local::with_any(|queue| {
        let Some(queue) = queue else { return true };
        let is_its_own = queue.is_of(shared) && queue.shared.running_on(queue.index) == Some(pid);
        !is_its_own && queue.shared.crew.has_relief(queue.index)
    })
}

impl Shared {
    /// The worker, which is this thread, is about to block: has somebody else take what waits. `false` when nobody
    /// can.
    #[must_use]
    fn make_way(self: &Arc<Self>, worker: usize) -> bool {
        let Self {
            idle,
            crew,
            shutdown,
            ..
        } = &**self;
        // After the halt nobody's place is taken any more.
        if shutdown.is_halted() || !self.has_work() || idle.notify() {
            return true;
        }
        // Ordering: SeqCst, pairs with the one in `Idle::end_search`: either the last searcher sees what waits here, or
        // the look below sees that it has ended its search.
        fence(Ordering::SeqCst);
        let now = idle.snapshot();
        let is_somebody_free = now.sleeping > 0 || now.searching > 0;
        is_somebody_free || crew.relieve(self, worker, None) || crew.is_relieved(worker)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::frames::Frame;
    use crate::local::LocalQueue;

    /// There may be none left to end the one that it would wait for.
    // pins: D3, D4
    #[test]
    fn a_thread_that_ends_the_processes_of_a_scheduler_waits_for_none_of_them() {
        let scheduler = || Scheduler::builder().workers(2).max_spares(0);
        let [here, there] = [(); 2].map(|()| scheduler().build().unwrap());
        let pid = Pid::new(there.host_name(), 7);
        let may_wait = || may_wait_for(&there.shared, pid);
        let and_when_it_ends_others = || frames::within(&*there.shared, Frame::Turn, may_wait);
        assert_eq!((may_wait(), and_when_it_ends_others()), (true, false));
        // On a worker of another scheduler, whose place is taken.
        here.shared.crew.step_back(1);
        assert!(here.shared.crew.relieve(&here.shared, 0, None));
        let queue = LocalQueue::of_first(&here.shared);
        local::enter(&queue, || {
            assert_eq!((may_wait(), and_when_it_ends_others()), (true, false));
        });
    }
}
