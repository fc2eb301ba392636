//! The processes that run before all others, because a system event has woken them, or waits for them.
//!
//! **Problem.** A process that is cancelled, or is sent a control message, is not to wait for thousands
//! of others that are ready, and workers that have no such process are not to pay for those that could.
//!
//! **Rejected.** A lane of each worker's own: whoever wakes a process on another thread had to choose one,
//! and its worker may be in a long step. Putting the process on top of the worker's deque: it could be
//! stolen from there, or be buried by what the same step wakes next. crossbeam's `SegQueue`, for the reasons in `global.rs`:
//! who is suspended in a push would stop all workers.
//!
//! **Protocol.** One first-in-first-out queue for all, as that of new processes, and the count of what is in it, which is all that
//! workers look at as long as it is 0. A pusher counts before it pushes, a taker takes back after it has
//! taken: so who sees 0 has missed nothing that it was to see, and `idle.rs` says why a push is seen.
//! Workers take from it before they look elsewhere, up to eight times in a row (`worker/ladder.rs`).

use crate::global::GlobalQueue;
use crate::token::Token;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct UrgentLane<T = Token> {
    /// How many are queued, or about to be. Written by pushers and takers, read by every worker at every
    /// pick.
    count: CachePadded<AtomicUsize>,
    queue: GlobalQueue<T>,
}

impl<T> UrgentLane<T> {
    pub(crate) fn new() -> Self {
        Self {
            count: CachePadded::new(AtomicUsize::new(0)),
            queue: GlobalQueue::new(),
        }
    }

    /// Puts a process behind the others. To be followed by a wake-up, or by this worker's own look.
    pub(crate) fn push(&self, token: T) {
        // Ordering: Relaxed: the pusher's fence in `Idle::notify_from_outside` orders it for a worker
        // that falls asleep, and for the last searcher; any other may see it late.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.queue.push(token);
    }

    /// Takes the first process. It may find none, though there is one that is being pushed.
    pub(crate) fn pop(&self) -> Option<T> {
        let token = self.queue.pop()?;
        // Ordering: Relaxed, as above.
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(token)
    }

    /// How many are queued, or about to be.
    pub(crate) fn len(&self) -> usize {
        // Ordering: Relaxed: the auditor's versions order it; for display nothing has to.
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nothing is queued, or about to be.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed, as above: the heavy fence in `Idle::sleep` orders a sleeper's last look, the
        // fence in `Idle::end_search` that of the last searcher.
        self.count.load(Ordering::Relaxed) == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::Scheduler;
    use crate::still::Still;

    // pins: G2
    #[test]
    fn what_is_in_the_lane_is_work_and_leaves_it_in_order() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let submit = || scheduler.submit(Still, "main", ()).unwrap();
        let handles = [submit(), submit()];
        let shared = &scheduler.shared;
        let tokens: Vec<_> = std::iter::from_fn(|| shared.global.pop()).collect();
        assert!(!shared.has_work() && shared.urgent.pop().is_none());
        for token in tokens {
            shared.urgent.push(token);
            assert!(shared.has_work(), "a worker would fall asleep beside it");
        }
        for handle in &handles {
            assert!(!shared.urgent.is_empty());
            let task = shared.urgent.pop().unwrap().into_task();
            assert_eq!(task.pid, handle.pid());
        }
        assert!(shared.urgent.is_empty() && !shared.has_work());
        drop(handles);
        // Nobody has their tokens any more: there is nothing that would end them.
        std::mem::forget(scheduler);
    }
}
