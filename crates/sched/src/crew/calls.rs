//! What a worker is called to besides its turns, and what its steps have announced: a word each.
//!
//! **Problem.** After each turn a worker has to see whether somebody has taken its place, or whether there is
//! something to report. **Rejected.** A flag for each: the path of a step would have another load.

use ganger_sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Somebody has taken the worker's place.
const RELIEVED: u32 = 1;

/// There is a step to be reported.
const TELL: u32 = 2;

/// What a worker is called to.
#[derive(Default)]
pub(crate) struct Calls(AtomicU32);

impl Calls {
    /// Whether it is called to anything.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        // Ordering: Relaxed: one who reads it late does so after the next step. Who is about to sleep reads it
        // behind the heavy fence of `Idle::look_again`, which pairs with the light one of `Idle::notify`,
        // before which the monitor has written it; and the last who searches, for whose sake others sleep,
        // behind the fence of `Idle::end_search`.
        self.0.load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(crate) fn is_relieved(&self) -> bool {
        // Ordering: Relaxed: as above; where the order counts, the lock of the spares is held. Who announces its
        // sleep after `Idle::wake` has looked for it sees what was written before that, by the sleepers' lock.
        self.0.load(Ordering::Relaxed) & RELIEVED != 0
    }

    /// Somebody takes its place.
    pub(super) fn relieve(&self) {
        // Ordering: Relaxed: the lock of the spares orders it.
        self.0.fetch_or(RELIEVED, Ordering::Relaxed);
    }

    /// It waits to take a place itself.
    pub(super) fn stand_down(&self) {
        // Ordering: Relaxed: as above.
        self.0.fetch_and(!RELIEVED, Ordering::Relaxed);
    }

    /// There is something to report.
    pub(super) fn tell(&self) {
        // Ordering: Relaxed: who sees it takes the lock of what is to be reported after whoever has written
        // that, for had it done so before, this store would come after its load.
        self.0.fetch_or(TELL, Ordering::Relaxed);
    }

    /// It is about to take what there is to report: whatever comes later calls it again.
    pub(super) fn told(&self) {
        // Ordering: Relaxed: as above.
        self.0.fetch_and(!TELL, Ordering::Relaxed);
    }
}

/// How often a worker's steps have begun and ceased to be about to block: odd while one is. So who looks now
/// and then sees that there was one in between. Written by the worker.
#[derive(Default)]
pub(super) struct Announcements(AtomicU64);

impl Announcements {
    /// The step is about to block. Returns false when it has said so already, and nobody is to end that twice.
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        let count = self.count();
        let is_outermost = count.is_multiple_of(2);
        if is_outermost {
            // Ordering: Relaxed: one who reads it late takes the step for one that has not said so.
            self.0.store(count + 1, Ordering::Relaxed);
        }
        is_outermost
    }

    /// It is not any more.
    pub(super) fn end(&self) {
        // Ordering: Relaxed, as above.
        self.0.store(self.count() + 1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        // Ordering: Relaxed, as above.
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_call_does_not_answer_the_other() {
        let calls = Calls::default();
        assert!(!calls.is_any());
        calls.tell();
        assert!(calls.is_any() && !calls.is_relieved());
        calls.relieve();
        calls.told();
        assert!(calls.is_any() && calls.is_relieved());
        calls.tell();
        calls.stand_down();
        assert!(calls.is_any() && !calls.is_relieved());
        calls.told();
        assert!(!calls.is_any());
    }

    #[test]
    fn what_is_announced_inside_of_another_call_counts_with_that() {
        let announcements = Announcements::default();
        for nth in 0..3 {
            assert_eq!(announcements.count(), 2 * nth);
            assert!(announcements.begin());
            assert!(!announcements.begin());
            assert_eq!(announcements.count(), 2 * nth + 1);
            announcements.end();
        }
    }
}
