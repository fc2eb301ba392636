//! The wait in the driver, by a thread at a time.
//!
//! **Problem.** Sockets and the like become ready in a place of the system of their own, the
//! driver. A thread must wait there, and while all are busy, a thread must poll the driver without
//! waiting. Two at a time would take events from each other.
//!
//! **Rejected.** A thread of its own: each event costs a hop between threads. The monitor: as well.
//! A look at each pick: a system call costs more than most steps.
//!
//! **State.** Whether a thread is in the driver, and how often threads have been.
//!
//! **Protocol**
//! 1. A worker that falls asleep waits in the driver instead of on its parker, if no thread is
//!    there. A waker of this worker interrupts the driver (`Parker::wait_elsewhere`). From then on
//!    the worker counts as busy, not as searching: it may be in a long call there.
//! 2. Processes made ready meanwhile wait. The worker leaves the driver, then the sleepers, and
//!    then queues them: a sleeper pushes nothing.
//! 3. A worker that finds no process polls the driver once before it rests, and a busy worker at a
//!    rotation, when no thread has for a while. The worker ends its search before the poll.
//! 4. A worker that has left the driver and begins a turn wakes the sleeping monitor, if any.
//! 5. The monitor polls when no thread has since its last look. When it has had to poll twice in a
//!    row, it wakes a sleeper. Before it sleeps it announces the sleep, makes a heavy fence, and
//!    waits in the driver itself, if no thread is there.
//! 6. A worker keeps ready processes to itself, if they are soon over: `worker/batch.rs`.
//!
//! **Why the driver is never left alone.** Either a thread waits in the driver, or a worker is
//! between two turns, or the monitor watches. A worker sleeps after it found the place taken by
//! another thread. This other thread waits, or polls and is awake. An awake worker falls asleep by
//! 1, or begins a turn by 4. The monitor's fence stands between its announcement and its look at
//! the place, the worker's between leaving the place and its look at the announcement: one of the
//! two sees the other.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | `is_taken` | the thread that enters or leaves | all |
//! | `visits` | the thread that leaves | monitor |
//! | `left` | the thread that leaves | workers |

use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[derive(Default)]
struct Place {
    is_taken: AtomicBool,
    visits: AtomicU64,
    /// When a thread has last left the place, in nanoseconds.
    left: AtomicU64,
}

/// The place in the driver, for a thread at a time.
#[derive(Default)]
pub(crate) struct Waiter(CachePadded<Place>);

impl Waiter {
    /// Returns whether no thread is in the driver. A caller that relies on the answer is behind a
    /// fence.
    pub(crate) fn is_free(&self) -> bool {
        // Ordering: Relaxed: the fences of `idle.rs` order it where it counts.
        !self.0.is_taken.load(Ordering::Relaxed)
    }

    /// Returns the number of visits to the driver.
    pub(crate) fn visits(&self) -> u64 {
        // Ordering: Relaxed: an overlooked visit costs another visit.
        self.0.visits.load(Ordering::Relaxed)
    }

    /// Returns when a thread has last left the driver.
    pub(crate) fn left(&self) -> u64 {
        // Ordering: Relaxed: an overlooked visit costs another visit, as in `visits`.
        self.0.left.load(Ordering::Relaxed)
    }

    /// Calls `wait` if no other thread is in the driver; `wait` returns the time of its end.
    /// Returns whether it was called.
    pub(crate) fn enter(&self, wait: impl FnOnce() -> u64) -> bool {
        let Place {
            is_taken,
            visits,
            left,
        } = &*self.0;
        // Ordering: Acquire pairs with the Release below: visits come one after the other.
        let change = is_taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if change.is_err() {
            return false;
        }
        // Ordering: Relaxed, both: one thread at a time writes them, and readers may be late.
        left.store(wait(), Ordering::Relaxed);
        visits.store(visits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Ordering: Release pairs with the Acquire above. The fence before a look at whether the
        // monitor sleeps follows in `Idle::defer`.
        is_taken.store(false, Ordering::Release);
        true
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_is_there_at_a_time() {
        let waiter = Waiter::default();
        assert!(waiter.is_free());
        let entered = waiter.enter(|| {
            assert!(!waiter.is_free() && !waiter.enter(|| panic!("another is there")));
            7
        });
        assert!(entered && waiter.is_free());
        assert_eq!((waiter.visits(), waiter.left()), (1, 7));
    }
}
