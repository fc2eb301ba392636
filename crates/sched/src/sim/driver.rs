//! The driver decides, on this thread, what the scheduler leaves to chance.

use crate::core::token::Token;
use ganger_deque::Worker as Deque;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// Decides.
pub trait Driver {
    /// One of so many; `what` says what for.
    fn choose(&mut self, what: &'static str, of: usize) -> usize;

    /// Whether something goes wrong; `what` says what.
    fn happens(&mut self, what: &'static str) -> bool;
}

thread_local! {
    static DRIVER: RefCell<Option<Box<dyn Driver>>> = const { RefCell::new(None) };
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
    /// Spares that are to be put to work: see [`hire`].
    static HIRED: RefCell<Vec<(usize, Deque<Token>)>> = const { RefCell::new(Vec::new()) };
    /// The turn that is about to be run has been counted.
    static HAS_BEGUN: Cell<bool> = const { Cell::new(false) };
    /// What the clock of the simulation shows.
    static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static BROKEN: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Calls `f` with that driver for this thread, and returns the first promise that was broken
/// meanwhile, too.
///
/// # Panics
/// When there is a driver already.
pub fn drive<R>(driver: Box<dyn Driver>, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            IS_DRIVEN.set(false);
            DRIVER.take();
            super::moment::forget();
            super::note::forget();
        }
    }
    assert!(
        !IS_DRIVEN.replace(true),
        "this thread runs a simulation already"
    );
    DRIVER.replace(Some(driver));
    BROKEN.take();
    let _leave = Leave;
    f()
}

/// Takes the deque of a spare whose thread would be started, if there is a driver: the machine has
/// the spare work. Else gives it back.
pub(crate) fn hire(index: usize, deque: Deque<Token>) -> Option<Deque<Token>> {
    if !IS_DRIVEN.get() {
        return Some(deque);
    }
    HIRED.with_borrow_mut(|hired| hired.push((index, deque)));
    None
}

/// Those that have been hired since the last call.
pub(super) fn hired() -> Vec<(usize, Deque<Token>)> {
    HIRED.take()
}

/// The next turn has been counted already, because its step has blocked before it began.
pub(crate) fn set_begun() {
    HAS_BEGUN.set(true);
}

/// Whether the turn that begins has been counted.
pub(crate) fn has_begun() -> bool {
    HAS_BEGUN.replace(false)
}

/// The first promise that has been broken since this thread has had its driver, once.
#[must_use]
pub fn broken() -> Option<String> {
    BROKEN.take()
}

/// Notes what is broken, where there is a driver; returns whether there is one.
pub(crate) fn note_broken(message: &str) -> bool {
    if IS_DRIVEN.get() {
        BROKEN.with_borrow_mut(|broken| {
            broken.get_or_insert_with(|| message.to_owned());
        });
    }
    IS_DRIVEN.get()
}

/// Refuses a call that would block the only thread that there is.
///
/// # Panics
/// On a thread that has a driver. In a step the scheduler contains that, so it is noted as well.
#[track_caller]
pub(crate) fn refuse_to_block(what: &str, instead: &str) {
    let message = format!("{what} would block the simulation for ever; use {instead}");
    assert!(!note_broken(&message), "{message}");
}

/// The clock of the simulation shows that.
pub(super) fn set_time(now: Duration) {
    TIME.set(now);
}

/// What it shows, if there is one.
pub(crate) fn time() -> Option<Duration> {
    IS_DRIVEN.get().then(|| TIME.get())
}

/// Whether this thread has a driver.
pub(crate) fn is_driven() -> bool {
    IS_DRIVEN.get()
}

/// One of so many, if there is a driver.
pub(crate) fn choose(what: &'static str, of: usize) -> Option<usize> {
    with(|driver| driver.choose(what, of))
}

/// Whether something goes wrong; `what` says what.
#[must_use]
pub fn happens(what: &'static str) -> bool {
    with(|driver| driver.happens(what)).unwrap_or(false)
}

/// One of so many, for what a simulation has put around users' code.
#[must_use]
pub fn pick(of: usize) -> usize {
    choose("user", of).unwrap_or(0)
}

/// Before each step: it may panic.
pub(crate) fn before_step() {
    if happens("step panics") {
        super::tell("fault: the step panics");
        panic!("a fault of the simulation: the step panics");
    }
}

fn with<R>(f: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
    if !IS_DRIVEN.get() {
        return None;
    }
    DRIVER.with_borrow_mut(|driver| driver.as_mut().map(|driver| f(&mut **driver)))
}
