//! The faults of a simulation, and how often they happen.

use std::time::Duration;

/// How often each fault happens, in times out of a thousand. By default none happens.
///
/// # Moments
/// A fault from outside of the scheduler happens before any move, and in the middle of some: while
/// a process is being submitted, before and after a step, while a process ends. It also happens in
/// a step and in `init`, after each call of the context, of a handle or of an address.
///
/// # Moves within a move
/// After such a call, other actors move as well: see `others_move`. So the step of a process goes
/// on between two sends of another step, as on threads. Calls of handlers, of `close` and of the
/// test itself are not interrupted.
///
/// All actors share a thread of the machine. **A step or an `init` that holds a lock of its own in
/// such a call waits for ever** when a process that moves meanwhile takes the same lock. After 30
/// seconds the simulation reports it, and aborts the program. Release the lock before the call, or
/// set `others_move` to 0.
///
/// ```
/// use ganger_sim::Faults;
/// let faults = Faults { step_panics: 5, ..Faults::some() };
/// assert!(faults.steal_fails > 0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// A worker with a chance to steal finds nothing.
    pub steal_fails: u32,
    /// A worker stands still for up to a hundred moves of other actors, like a thread that the
    /// system has taken off its processor.
    pub worker_stalls: u32,
    /// After a call of a step or of an `init`, other workers, the monitor and due timers make up to
    /// [`MOVES`] moves: see [above](Self#moves-within-a-move). The clock stands still meanwhile.
    pub others_move: u32,
    /// The clock jumps forward, by up to [`JUMP`].
    pub clock_jumps: u32,
    /// A step panics before it has done anything.
    pub step_panics: u32,
    /// A step blocks its thread for up to 100 ms before it does anything. With
    /// [spares](crate::Sim::spares), a spare may take its worker's place meanwhile.
    pub step_blocks: u32,
    /// The answer of a handler registered with [`Rt::register`](crate::Rt::register) comes later,
    /// by up to [`LATE`].
    pub handler_is_late: u32,
    /// Such a handler is not called: its completer is dropped.
    pub handler_drops: u32,
    /// Such a handler is not called: the command fails.
    pub handler_fails: u32,
    /// Such a handler is called and reports an error as well. The error is the answer; the
    /// handler's own answer comes later and is refused.
    pub handler_answers_twice: u32,
    /// At a [moment](Self#moments), some process is asked to upgrade itself. A factory registered
    /// with [`Rt::register_upgrade`](crate::Rt::register_upgrade) makes the new process.
    pub process_is_upgraded: u32,
    /// Such a factory panics.
    pub upgrade_fails: u32,
    /// The scheduler's [router](crate::Rt::router) refuses an envelope from the scheduler; it comes
    /// back.
    pub envelope_is_refused: u32,
    /// Such an envelope arrives later, by up to [`LATE`]. Later envelopes of the same sender for
    /// the same receiver stay behind it. If it is refused on arrival, its sender is not told: see
    /// [`Rt::returned`](crate::Rt::returned).
    pub envelope_is_late: u32,
    /// Before a move, some host or peer of the router disappears for up to [`LATE`].
    pub place_disappears: u32,
    /// At a [moment](Self#moments), a sleeping worker is woken without work, as by a second
    /// wake-up. (For a late wake-up see `worker_stalls`.)
    pub worker_wakes_in_vain: u32,
    /// A worker that sleeps until a timer is due wakes when half of the time is over.
    pub timer_waiter_wakes_early: u32,
    /// When no actor can move and a timer is due next, it is delivered up to [`LATE`] too late, as
    /// on a busy machine.
    pub delivery_stalls: u32,
    /// At a [moment](Self#moments), an act registered with [`Rt::meanwhile`](crate::Rt::meanwhile)
    /// happens.
    pub others_act: u32,
    /// At a [moment](Self#moments), some process is terminated.
    pub process_is_terminated: u32,
    /// At a [moment](Self#moments), some process is cancelled.
    pub process_is_cancelled: u32,
    /// At a [moment](Self#moments), the scheduler begins to shut down, with a deadline of up to
    /// [`LATE`].
    pub shutdown_begins: u32,
    /// At a [moment](Self#moments), the deadline of a begun shutdown passes. With this fault the
    /// workers leave some moves after the deadline, as they do after a time of grace.
    pub shutdown_is_forced: u32,
}

/// The most moves of other actors at a moment within a move.
pub const MOVES: usize = 16;

/// How far the clock jumps at most.
pub const JUMP: Duration = Duration::from_secs(60);

/// How late an answer comes at most.
pub const LATE: Duration = Duration::from_millis(100);

impl Faults {
    /// Returns the faults that every program meets wherever it runs, each at times: no panics, no
    /// terminations, no cancellations.
    #[must_use]
    pub const fn some() -> Self {
        Self {
            steal_fails: 50,
            worker_stalls: 10,
            others_move: 100,
            clock_jumps: 1,
            step_panics: 0,
            step_blocks: 0,
            handler_is_late: 200,
            handler_drops: 0,
            handler_fails: 0,
            handler_answers_twice: 0,
            process_is_upgraded: 0,
            upgrade_fails: 0,
            envelope_is_refused: 0,
            envelope_is_late: 0,
            place_disappears: 0,
            worker_wakes_in_vain: 0,
            timer_waiter_wakes_early: 50,
            delivery_stalls: 50,
            others_act: 0,
            process_is_terminated: 0,
            process_is_cancelled: 0,
            shutdown_begins: 0,
            shutdown_is_forced: 0,
        }
    }
}
