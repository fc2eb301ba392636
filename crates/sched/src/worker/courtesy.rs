//! Yielding the thread, as long as the system gives it back.
//!
//! **Problem.** A worker that searches is relied on: who pushes meanwhile wakes nobody (G5). While it yields,
//! the system may run whoever else computes on that processor, however low his priority, and for some
//! milliseconds; what is pushed waits for as long, beside workers that sleep.
//!
//! **Rejected.** Not to count as searching while it yields: somebody who pushes one process after the other
//! would wake a sleeper for each. To sleep at once: the same. To pause always in place of yielding: who pushes
//! on the same processor would wait for that, each time.
//!
//! **Protocol.** A yield that has lasted long, and from which a searcher comes back to a process or a few in the
//! global queue that a sleeper would have taken, was not for somebody who pushes. (What lies in deques is not looked
//! at: most of it would have waited anyway. Of a single worker, nobody could have taken it; whoever pushes to that
//! pays for wake-ups then, if it was he who has computed for so long.) It is the last one for a while: the worker
//! pauses in place of each, about as long as a yield takes that there is nobody for, and goes on by the same
//! ladder.

use crate::clock::Since;
use ganger_sync::{hint, thread};
use std::time::Duration;

/// So long nobody else should wait for a yield.
const LONG: Duration = Duration::from_micros(100);

/// So often it falls asleep before it yields again.
const SLEEPS: u32 = 1_000;

/// In place of a yield.
const PAUSES: u32 = 16;

#[derive(Default)]
pub(super) struct Courtesy {
    /// So often it falls asleep without having yielded.
    refrains: u32,
}

impl Courtesy {
    /// Lets others go first. Returns for how long, if it has yielded.
    pub(super) fn give_way(&self) -> Option<Duration> {
        if self.refrains > 0 {
            (0..PAUSES).for_each(|_| hint::spin_loop());
            return None;
        }
        let start = Since::before(Duration::ZERO);
        thread::yield_now();
        Some(start.elapsed())
    }

    /// It was away for so long. `has_cost` is whether something has waited for it meanwhile.
    pub(super) fn come_back(&mut self, lasted: Duration, has_cost: impl FnOnce() -> bool) {
        if lasted >= LONG && has_cost() {
            self.refrains = SLEEPS;
        }
    }

    /// It has found nothing, and falls asleep.
    pub(super) fn fall_asleep(&mut self) {
        self.refrains = self.refrains.saturating_sub(1);
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn refrains(&self) -> bool {
        self.refrains > 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    // pins: G5
    #[test]
    fn who_was_kept_long_while_something_waited_refrains_for_a_while() {
        let mut courtesy = Courtesy::default();
        for (lasted, has_cost, refrains) in
            [(LONG / 2, true, 0), (LONG, false, 0), (LONG, true, SLEEPS)]
        {
            courtesy.come_back(lasted, || has_cost);
            assert_eq!(courtesy.refrains, refrains, "{lasted:?}, {has_cost}");
        }
        assert_eq!(courtesy.give_way(), None, "it has not yielded");
        (1..SLEEPS).for_each(|_| courtesy.fall_asleep());
        assert_eq!(courtesy.refrains, 1);
        (0..2).for_each(|_| courtesy.fall_asleep());
        assert_eq!(courtesy.refrains, 0);
        assert!(courtesy.give_way().is_some());
    }
}
