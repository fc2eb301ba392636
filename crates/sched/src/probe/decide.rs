//! The decisions of a simulation in the place of random numbers, clock and threads.
//!
//! All decisions concern the calling thread, so there is no value: a thread has a driver, or has
//! none. The defaults are those of a thread without a driver.

use super::Scheduler;
use std::time::Duration;

pub(crate) trait Decide {
    /// Returns whether this thread stands in for all threads: it starts none, and its clock stands
    /// still within a move.
    #[inline(always)]
    fn is_driven() -> bool {
        false
    }

    /// Chooses a number below `of`, in the place of a random number; `what` names the purpose.
    #[inline(always)]
    fn choose(_what: &'static str, _of: usize) -> Option<usize> {
        None
    }

    /// Returns whether a fault happens; `what` names the fault.
    #[inline(always)]
    fn happens(_what: &'static str) -> bool {
        false
    }

    /// Acts before each step, where a panic counts as the step's.
    #[inline(always)]
    fn stepping() {}

    /// Keeps a broken promise for the thread's driver; returns whether the thread has a driver.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "check"),
        expect(dead_code, reason = "for the checker alone")
    )]
    fn note_violation(_message: &str) -> bool {
        false
    }

    /// Panics where a call would block the only thread; `instead` names the call to make.
    #[inline(always)]
    #[track_caller]
    fn refuse_to_block(_what: &str, _instead: &str) {}

    /// Takes the deque of a worker whose thread would be started, of the scheduler with this
    /// number. Otherwise gives it back.
    #[inline(always)]
    fn hire<D: 'static>(_scheduler: u64, _worker: usize, deque: D) -> Option<D> {
        Some(deque)
    }

    /// Returns the present time, in the place of the machine's.
    #[inline(always)]
    fn time() -> Option<Duration> {
        None
    }

    /// Returns the present time of the scheduler with this number, in the place of the machine's.
    /// The times of several schedulers of a simulation may differ.
    #[inline(always)]
    fn time_of(_scheduler: u64) -> Option<Duration> {
        None
    }

    /// Begins a stop with this deadline without a thread; returns whether it has.
    #[inline(always)]
    fn begin_stop(_scheduler: &dyn Scheduler, _deadline: Duration) -> bool {
        false
    }

    /// Returns when the stop of the scheduler with this number must be over, by
    /// [`time`](Self::time).
    #[inline(always)]
    fn stop_by(_scheduler: u64) -> Option<Duration> {
        None
    }

    /// Returns the generation at which the ids of a scheduler begin that checks its promises.
    #[inline(always)]
    fn first_generation() -> Option<u32> {
        None
    }
}

/// Nothing is decided.
impl Decide for () {}
