//! Hands that nobody sees to, of those who have queued something after the halt.
//!
//! **Problem.** Nobody looks at the queues any more, and who queues something is anybody's thread: it is not to be kept by
//! the `close` of others. A hand for each that is queued would be a thread for each.
//!
//! **Protocol.** Who has queued something enters, unless there are enough hands, and has a thread of its own work until
//! nothing is queued. A hand leaves first, and then looks once more: so who was refused is looked after by the next one
//! that leaves.

use ganger_sync::atomic::{AtomicUsize, Ordering, fence};

pub(crate) struct LateHands {
    most: usize,
    now: AtomicUsize,
}

impl LateHands {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            now: AtomicUsize::new(0),
        }
    }

    /// One more, who is to work. False if there are enough. To be called after a full fence behind what is queued.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        let one_more = |now| (now < self.most).then_some(now + 1);
        // Ordering: Relaxed, because the fences order it: something is queued, fence, then this is read; a hand leaves,
        // fence, then it looks at the queues. One of the two sees the other.
        (self.now)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    /// Calls `reap`, of one who has entered, until nothing is queued, or there are enough others.
    pub(crate) fn work(&self, mut reap: impl FnMut(), has_work: impl Fn() -> bool) {
        loop {
            reap();
            // Ordering: Relaxed, as above.
            self.now.fetch_sub(1, Ordering::Relaxed);
            // Ordering: SeqCst, pairs with the fence before `enter`.
            fence(Ordering::SeqCst);
            if !has_work() || !self.enter() {
                return;
            }
        }
    }
}
