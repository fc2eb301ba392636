//! What a simulation decides in the place of chance, clock and threads.
//!
//! All of it is about the calling thread, so that there is no value: a thread has a driver, or has
//! none. The defaults are those of a thread without one.

use super::Scheduler;
use std::time::Duration;

pub(crate) trait Decide {
    /// Whether this thread stands in for all threads: it starts none, and its clock stands still
    /// within a move.
    #[inline(always)]
    fn is_driven() -> bool {
        false
    }

    /// One of so many, in the place of a random number; `what` says what for.
    #[inline(always)]
    fn choose(_what: &'static str, _of: usize) -> Option<usize> {
        None
    }

    /// Whether something goes wrong; `what` says what.
    #[inline(always)]
    fn happens(_what: &'static str) -> bool {
        false
    }

    /// Before each step, where a panic counts as one of the step.
    #[inline(always)]
    fn stepping() {}

    /// Keeps a promise that is broken for the thread's driver; says whether there is one.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "check"),
        expect(dead_code, reason = "for the checker alone")
    )]
    fn note_violation(_message: &str) -> bool {
        false
    }

    /// Panics where a call would block the only thread that there is; `instead` says what to call.
    #[inline(always)]
    #[track_caller]
    fn refuse_to_block(_what: &str, _instead: &str) {}

    /// Takes the deque of a worker whose thread would be started. Otherwise gives it back.
    #[inline(always)]
    fn hire<D: 'static>(_worker: usize, deque: D) -> Option<D> {
        Some(deque)
    }

    /// What the clock shows, in the place of the machine's.
    #[inline(always)]
    fn time() -> Option<Duration> {
        None
    }

    /// Whether the stop with that deadline has begun without a thread.
    #[inline(always)]
    fn begin_stop(_scheduler: &dyn Scheduler, _deadline: Duration) -> bool {
        false
    }

    /// When a stop has to be over, by [`time`](Self::time).
    #[inline(always)]
    fn stop_by() -> Option<Duration> {
        None
    }
}

/// Nothing is decided.
impl Decide for () {}
