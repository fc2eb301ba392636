//! The driver makes the scheduler's random decisions, on this thread.

use super::{Simulation, interleave};
use crate::probe::{Decide, Scheduler};
use crate::runtime::local;
use crate::runtime::shared::Shared;
use crate::runtime::token::Token;
use ganger_deque::Worker as Deque;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Makes the scheduler's random decisions.
pub trait Driver {
    /// Chooses a number below `of`; `what` names the purpose.
    fn choose(&mut self, what: &'static str, of: usize) -> usize;

    /// Whether a fault happens; `what` names the fault.
    fn happens(&mut self, what: &'static str) -> bool;
}

thread_local! {
    static DRIVER: RefCell<Option<Box<dyn Driver>>> = const { RefCell::new(None) };
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
    /// Spares to put to work: see [`Decide::hire`].
    static HIRED: RefCell<Vec<(usize, Deque<Token>)>> = const { RefCell::new(Vec::new()) };
    static VIOLATION: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The time of the simulation's clock.
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

/// The spares hired since the last call.
pub(super) fn hired() -> Vec<(usize, Deque<Token>)> {
    HIRED.take()
}

/// Sets the time of the simulation's clock.
pub(super) fn set_time(now: Duration) {
    TIME.set(now);
}

/// The first promise broken since this thread has had its driver, once.
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

    /// The machine has the spare work.
    fn hire<D: 'static>(worker: usize, deque: D) -> Option<D> {
        let mut deque = Some(deque);
        if Self::is_driven()
            && let Some(deque) = (&mut deque as &mut dyn Any).downcast_mut::<Option<Deque<Token>>>()
            && let Some(deque) = deque.take()
        {
            HIRED.with_borrow_mut(|hired| hired.push((worker, deque)));
        }
        deque
    }

    fn begin_stop(scheduler: &dyn Scheduler, deadline: Duration) -> bool {
        if Self::is_driven() {
            interleave::begin_stop(Shared::of(scheduler), deadline);
        }
        Self::is_driven()
    }

    fn stop_by() -> Option<Duration> {
        interleave::stop_by()
    }
}

/// Whether a fault happens; `what` names the fault.
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
