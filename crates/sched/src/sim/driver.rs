//! The driver decides, on this thread, what the scheduler leaves to chance.

use crate::core::token::Token;
use ganger_deque::Worker as Deque;
use std::any::Any;
use std::cell::{Cell, RefCell};

/// Decides what the scheduler leaves to chance.
pub trait Driver {
    /// Chooses one of so many alternatives; `what` says what for.
    fn choose(&mut self, what: &'static str, of: usize) -> usize;

    /// Whether something goes wrong; `what` says what.
    fn happens(&mut self, what: &'static str) -> bool;
}

thread_local! {
    static DRIVER: RefCell<Option<Box<dyn Driver>>> = const { RefCell::new(None) };
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
    /// Spares that are to be put to work: see [`hire`].
    static HIRED: RefCell<Vec<(usize, Deque<Token>)>> = const { RefCell::new(Vec::new()) };
    static VIOLATION: RefCell<Option<String>> = const { RefCell::new(None) };
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
            super::interleave::forget();
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

/// Takes the deque of a spare whose thread would be started, if there is a driver: the machine has
/// the spare work. Otherwise gives it back.
pub(super) fn hire<D: 'static>(index: usize, deque: D) -> Option<D> {
    let mut deque = Some(deque);
    if is_driven()
        && let Some(deque) = (&mut deque as &mut dyn Any).downcast_mut::<Option<Deque<Token>>>()
        && let Some(deque) = deque.take()
    {
        HIRED.with_borrow_mut(|hired| hired.push((index, deque)));
    }
    deque
}

/// The spares that have been hired since the last call.
pub(super) fn hired() -> Vec<(usize, Deque<Token>)> {
    HIRED.take()
}

/// The first promise that has been broken since this thread has had its driver, once.
#[must_use]
pub fn violation() -> Option<String> {
    VIOLATION.take()
}

/// Notes what is broken, where there is a driver; returns whether there is one.
pub(super) fn note_violation(message: &str) -> bool {
    if IS_DRIVEN.get() {
        VIOLATION.with_borrow_mut(|violation| {
            violation.get_or_insert_with(|| message.to_owned());
        });
    }
    IS_DRIVEN.get()
}

/// Whether this thread has a driver.
pub(super) fn is_driven() -> bool {
    IS_DRIVEN.get()
}

/// One of so many, if there is a driver.
pub(super) fn choose(what: &'static str, of: usize) -> Option<usize> {
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

fn with<R>(f: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
    if !IS_DRIVEN.get() {
        return None;
    }
    DRIVER.with_borrow_mut(|driver| driver.as_mut().map(|driver| f(&mut **driver)))
}
