//! What may go wrong, and how often.

use std::time::Duration;

/// How often what goes wrong, in times out of a thousand; nothing, by default.
///
/// ```
/// use ganger_sim::Faults;
/// let faults = Faults { step_panics: 5, ..Faults::some() };
/// assert!(faults.steal_fails > 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A worker that could steal finds nothing.
    pub steal_fails: u32,
    /// A worker stands still for up to a hundred moves of others, as a thread does that the system has
    /// taken off its processor.
    pub worker_stalls: u32,
    /// The clock jumps forward, by up to [`JUMP`].
    pub clock_jumps: u32,
    /// A step panics before it has done anything.
    pub step_panics: u32,
    /// The answer of a handler that was registered with [`Rt::register`](crate::Rt::register) comes later, by up
    /// to [`LATE`].
    pub handler_is_late: u32,
    /// Such a handler is not called: its completer is dropped.
    pub handler_drops: u32,
    /// Such a handler is not called: the command fails.
    pub handler_fails: u32,
    /// Before a move, some process is terminated.
    pub process_is_terminated: u32,
    /// Before a move, some process is cancelled.
    pub process_is_cancelled: u32,
}

/// How far the clock jumps, at the most.
pub const JUMP: Duration = Duration::from_secs(60);

/// How late an answer comes, at the most.
pub const LATE: Duration = Duration::from_millis(100);

impl Faults {
    /// Those that a program has to live with wherever it runs, each now and then: no panics, and nobody is
    /// terminated or cancelled.
    #[must_use]
    pub const fn some() -> Self {
        Self {
            steal_fails: 50,
            worker_stalls: 10,
            clock_jumps: 1,
            step_panics: 0,
            handler_is_late: 200,
            handler_drops: 0,
            handler_fails: 0,
            process_is_terminated: 0,
            process_is_cancelled: 0,
        }
    }
}
