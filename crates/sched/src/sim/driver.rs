//! The driver makes the scheduler's random decisions, on this thread.

use super::{SetClock, Simulation, interleave};
use crate::base::clock::Clock;
use crate::probe::{Decide, Scheduler};
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_deque::Worker as Deque;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Makes the scheduler's random decisions.
pub trait Driver {
    /// Chooses a number below `of`; `what` names the purpose.
    fn choose(&mut self, what: &'static str, of: usize) -> usize;

    /// Decides whether a fault happens; `what` names the fault.
    fn happens(&mut self, what: &'static str) -> bool;
}

thread_local! {
    static DRIVER: RefCell<Option<Box<dyn Driver>>> = const { RefCell::new(None) };
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
    /// Spares to put to work, with the numbers of their schedulers: see [`Decide::hire`].
    static HIRED: RefCell<Vec<(u64, usize, Deque<Token>)>> = const { RefCell::new(Vec::new()) };
    /// The generation at which the ids of the next scheduler begin.
    static FIRST_GENERATION: Cell<u32> = const { Cell::new(1) };
    static VIOLATION: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The clocks of all machines, by the numbers of their schedulers.
    static CLOCKS: RefCell<BTreeMap<u64, SetClock>> = const { RefCell::new(BTreeMap::new()) };
    /// The time of the machine that moves.
    static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Calls `f` with the driver for this thread, and also returns the first promise broken meanwhile.
///
/// # Panics
/// When the thread has a driver already.
pub fn drive<R>(driver: Box<dyn Driver>, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            IS_DRIVEN.set(false);
            DRIVER.take();
            HIRED.take();
            CLOCKS.take();
            FIRST_GENERATION.set(1);
            interleave::forget();
            super::note::forget();
        }
    }
    assert!(
        !IS_DRIVEN.replace(true),
        "this thread runs a simulation already"
    );
    DRIVER.replace(Some(driver));
    VIOLATION.take();
    let _leave = Leave;
    f()
}

/// Takes the spares hired by a scheduler since the last call.
pub(super) fn hired(scheduler: u64) -> Vec<(usize, Deque<Token>)> {
    HIRED.with_borrow_mut(|hired| {
        let own = hired.extract_if(.., |it| it.0 == scheduler);
        own.map(|(_, worker, deque)| (worker, deque)).collect()
    })
}

/// Has the ids of schedulers built from now on begin at this generation, so that a PID of one finds
/// no process of another.
pub fn begin_ids_at(generation: u32) {
    FIRST_GENERATION.set(generation);
}

/// Adds the clock of a scheduler.
pub(super) fn add_clock(scheduler: u64, clock: SetClock) {
    CLOCKS.with_borrow_mut(|clocks| clocks.insert(scheduler, clock));
}

/// Sets the time of the machine that moves.
pub(super) fn set_time(now: Duration) {
    TIME.set(now);
}

/// Takes the first promise broken since this thread has had its driver, once.
#[must_use]
pub fn violation() -> Option<String> {
    VIOLATION.take()
}

impl Decide for Simulation {
    #[inline]
    fn is_driven() -> bool {
        IS_DRIVEN.get()
    }

    #[inline]
    fn choose(what: &'static str, of: usize) -> Option<usize> {
        with(|driver| driver.choose(what, of))
    }

    #[inline]
    fn happens(what: &'static str) -> bool {
        with(|driver| driver.happens(what)).unwrap_or(false)
    }

    #[inline]
    fn time() -> Option<Duration> {
        Self::is_driven().then(|| TIME.get())
    }

    fn time_of(scheduler: u64) -> Option<Duration> {
        let own = || CLOCKS.with_borrow(|clocks| clocks.get(&scheduler).map(Clock::now));
        Self::is_driven().then(|| own().unwrap_or(TIME.get()))
    }

    #[inline]
    fn stepping() {
        if Self::is_driven() {
            step_in_a_simulation();
        }
    }

    fn note_violation(message: &str) -> bool {
        if Self::is_driven() {
            VIOLATION.with_borrow_mut(|violation| {
                violation.get_or_insert_with(|| message.to_owned());
            });
        }
        Self::is_driven()
    }

    #[track_caller]
    fn refuse_to_block(what: &str, instead: &str) {
        // In a step the scheduler contains the panic, so it is noted as well.
        let message = format!("{what} would block the simulation for ever; use {instead}");
        assert!(!Self::note_violation(&message), "{message}");
    }

    /// Hires a spare: the machine has it work. Returns the deque where no simulation runs.
    fn hire<D: 'static>(scheduler: u64, worker: usize, deque: D) -> Option<D> {
        let mut deque = Some(deque);
        if Self::is_driven()
            && let Some(deque) = (&mut deque as &mut dyn Any).downcast_mut::<Option<Deque<Token>>>()
            && let Some(deque) = deque.take()
        {
            HIRED.with_borrow_mut(|hired| hired.push((scheduler, worker, deque)));
        }
        deque
    }

    fn begin_stop(scheduler: &dyn Scheduler, deadline: Duration) -> bool {
        if Self::is_driven() {
            interleave::begin_stop(Shared::of(scheduler), deadline);
        }
        Self::is_driven()
    }

    fn stop_by(scheduler: u64) -> Option<Duration> {
        interleave::stop_by(scheduler)
    }

    fn first_generation() -> Option<u32> {
        Some(FIRST_GENERATION.get())
    }
}

/// Decides whether a fault happens; `what` names the fault.
#[must_use]
pub fn happens(what: &'static str) -> bool {
    Simulation::happens(what)
}

/// Draws a number below `of`, for a simulation's own code around users' code.
#[must_use]
pub fn pick(of: usize) -> usize {
    Simulation::choose("user", of).unwrap_or(0)
}

#[cold]
#[inline(never)]
fn step_in_a_simulation() {
    if happens("step panics") {
        let process = local::own_process().map(|task| super::describe(task.pid()));
        let of = process.map_or(String::new(), |process| format!(" of {process}"));
        super::tell(format!("fault: the step{of} panics"));
        panic!("a fault of the simulation: the step panics");
    }
}

#[inline]
fn with<R>(f: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
    if IS_DRIVEN.get() {
        with_driver(f)
    } else {
        None
    }
}

#[cold]
#[inline(never)]
fn with_driver<R>(f: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
    DRIVER.with_borrow_mut(|driver| driver.as_mut().map(|driver| f(&mut **driver)))
}
