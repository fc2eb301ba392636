//! The scheduler of a run, from the side of its test.

use crate::failure::STUCK;
use crate::moves::Core;
use crate::seat::Seat;
use crate::timers::SimClock;
use ganger_proc_api::{CommandError, ExitReason};
use ganger_sched::{Call, Handle, ProcessHandle};
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A scheduler in a simulation, as its test sees it. Actors move only inside of the test's calls:
/// see [`settle`](Self::settle) and [`wait`](Self::wait).
///
/// It dereferences to the scheduler's [`Handle`]. A call that would block the thread panics,
/// because no other thread moves the actors. Such calls are a send that waits for room,
/// `Handle::stop`, `Call::wait`, and `ProcessHandle::wait` of a live process. The last three have
/// counterparts here.
///
/// In a [`World`](crate::World) it is the scheduler of one machine, and the other machines move in
/// the same calls.
pub struct Rt<'a> {
    pub(crate) core: Rc<Core<'a>>,
    pub(crate) seat: Rc<Seat<'a>>,
}

impl<'a> Rt<'a> {
    pub(crate) fn new(core: Rc<Core<'a>>, seat: Rc<Seat<'a>>) -> Self {
        Self { core, seat }
    }

    /// Returns a handle of the scheduler, for processes and other crates to keep, as of
    /// [`Scheduler::handle`](ganger_sched::Scheduler::handle).
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.seat.handle.clone()
    }

    /// Returns the clock of the simulation, for processes and handlers to keep.
    #[must_use]
    pub fn clock(&self) -> SimClock {
        self.seat.clock.clone()
    }

    /// Returns the time since the simulation began.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.seat.clock.now()
    }

    /// Returns the number of moves so far.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.core.moves()
    }

    /// Returns a number below `of`, decided by the seed.
    ///
    /// # Panics
    /// When `of` is zero.
    #[must_use]
    #[track_caller]
    pub fn choose(&self, of: usize) -> usize {
        assert!(of > 0, "there is nothing to choose from");
        self.core.choose_for("test", of)
    }

    /// Makes a move of the next actor. Returns `false` when no actor can move and no timer is set
    /// any more.
    ///
    /// # Panics
    /// When a promise of the scheduler is broken, or the run takes more moves than it may.
    #[track_caller]
    pub fn step(&self) -> bool {
        self.core.step()
    }

    /// Goes on until no actor can move and no timer is set any more: all live processes wait.
    ///
    /// A process that wakes itself again and again, by the clock for example, keeps this call from
    /// returning: the run fails after [`Sim::max_moves`](crate::Sim::max_moves). Use
    /// [`run_for`](Self::run_for) with such a process.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn settle(&self) {
        while self.step() {}
    }

    /// Goes on until `time` has passed.
    ///
    /// # Panics
    /// As [`step`](Self::step).
    #[track_caller]
    pub fn run_for(&self, time: Duration) {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        // Ordering: Relaxed, for both accesses: the same thread makes them.
        self.seat
            .clock
            .after(time, move || over.store(true, Ordering::Relaxed));
        while !is_over.load(Ordering::Relaxed) && self.step() {}
    }

    /// Goes on until the process has ended; returns how it ended.
    ///
    /// # Panics
    /// When no actor can move and the process has not ended, and as [`step`](Self::step).
    #[track_caller]
    pub fn wait<M>(&self, process: ProcessHandle<M>) -> ExitReason {
        while !process.is_finished() {
            let pid = process.pid();
            if !self.step() {
                self.core.fail(format!("{pid} has not ended, and {STUCK}"));
            }
        }
        process.wait()
    }

    /// Calls a process, and goes on until the answer is here: the counterpart of `Call::wait`.
    ///
    /// # Errors
    /// As for [`Call::wait`].
    ///
    /// # Panics
    /// When no actor can move and no answer has come, and as [`step`](Self::step).
    #[track_caller]
    pub fn answer<T: Send + 'static>(&self, call: Call<T>) -> Result<T, CommandError> {
        let pid = call.pid();
        let answer = call.begin();
        while !answer.is_ready() {
            if !self.step() {
                let who = pid.map_or_else(|| "a call".to_owned(), |pid| pid.to_string());
                self.core
                    .fail(format!("{who} has not answered, and {STUCK}"));
            }
        }
        answer.wait()
    }
}

impl Deref for Rt<'_> {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.seat.handle
    }
}

impl fmt::Debug for Rt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rt")
            .field("now", &self.now())
            .field("moves", &self.moves())
            .finish_non_exhaustive()
    }
}
