//! Hands that nobody sees to, of those who have queued something after the halt.
//!
//! **Problem.** Nobody looks at the queues any more, and who queues something is anybody's thread: it is not to be kept by
//! the `close` of others. A hand for each that is queued would be a thread for each.
//!
//! **Protocol.** Who has queued something enters, unless there are enough hands, and has a thread of its own work until
//! nothing is queued. A hand leaves first, and then looks once more: so who was refused is looked after by the next one
//! that leaves.

use crate::clock::Deadline;
use ganger_sync::WaitableCount;
use ganger_sync::atomic::{Ordering, fence};

pub(crate) struct LateHands {
    most: usize,
    now: WaitableCount,
}

impl LateHands {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            now: WaitableCount::default(),
        }
    }

    /// One more, who is to work. False if there are enough. To be called after a full fence behind what is queued: that is
    /// queued, fence, then the count is read; a hand leaves, fence, then it looks at the queues. One of the two sees the
    /// other.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        self.now.enter_below(self.most)
    }

    /// Calls `reap`, of one who has entered, until nothing is queued, or there are enough others.
    pub(crate) fn work(&self, mut reap: impl FnMut(), has_work: impl Fn() -> bool) {
        loop {
            reap();
            self.now.leave();
            // Ordering: SeqCst, pairs with the fence before `enter`.
            fence(Ordering::SeqCst);
            if !has_work() || !self.enter() {
                return;
            }
        }
    }

    /// Blocks until all have left, or the deadline has passed. What has been queued before that has ended then: whoever
    /// queued it has entered, or was refused because there were others, or somebody who has not left yet has taken it.
    pub(crate) fn wait(&self, deadline: impl Fn() -> Deadline) {
        self.now.wait(|| 0, || deadline().remaining());
    }
}
