//! A thread that queues a process after the halt, against the reaper about to leave: no process is
//! left behind.

use crate::progress::reaper_pool::ReaperPool;
use ganger_sync::atomic::{AtomicUsize, Ordering, fence};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

struct Halted {
    reapers: ReaperPool,
    queued: AtomicUsize,
}

impl Halted {
    fn is_queued(&self) -> bool {
        // Ordering: Relaxed, as the real queues are looked at.
        self.queued.load(Ordering::Relaxed) > 0
    }

    fn queue_one(&self) {
        // Ordering: Release, as the real queues are pushed to.
        self.queued.fetch_add(1, Ordering::Release);
        // Ordering: SeqCst, as in `fence_after_halt`.
        fence(Ordering::SeqCst);
        if self.is_queued() && self.reapers.enter() {
            // Ordering: Acquire, as the real queues are taken from.
            let end_all = || _ = self.queued.swap(0, Ordering::Acquire);
            self.reapers.work(end_all, || self.is_queued());
        }
    }
}

// pins: D4
#[test]
fn what_is_queued_while_the_last_reaper_leaves_is_ended() {
    model::check(3, || {
        let halted = Arc::new(Halted {
            reapers: ReaperPool::new(1),
            queued: AtomicUsize::new(0),
        });
        let others = [(); 2].map(|()| {
            let halted = Arc::clone(&halted);
            thread::spawn(move || halted.queue_one())
        });
        halted.queue_one();
        for other in others {
            other.join().unwrap();
        }
        assert!(!halted.is_queued());
        assert!(halted.reapers.enter(), "one has not left");
    });
}
