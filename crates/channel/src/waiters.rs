//! Waiters for news that concern all of them.

use crate::entries::{self, Line, Remains, stage};
use crate::lock::Lock;
use crate::state::Wakes;
use ganger_wait::watch::{self, Registered, Thing};
use std::mem;
use std::task::{Context, Poll, Waker};

/// The waiters.
pub(crate) struct Waiters(Line<()>);

impl Waiters {
    pub(crate) fn new() -> Self {
        Self(Line::new())
    }

    /// Ends all waits.
    pub(crate) fn end_all(&mut self) -> Wakes {
        let mut wakes = Wakes::new();
        self.0.end_all(stage::MET, |wake| wakes.push(wake));
        wakes
    }

    fn leave(&mut self, seat: entries::Seat<()>) -> Remains {
        // SAFETY: a state has a single line, and a `Seat` is used with a single state.
        unsafe { self.0.leave(seat) }.0
    }

    fn wait(&mut self, waker: Waker) -> entries::Seat<()> {
        self.0.push_waker(waker, None)
    }
}

/// A wait: its entry, if it has begun.
#[derive(Default)]
pub(crate) struct Seat(Option<(entries::Seat<()>, Registered)>);

/// A state with waiters, under its lock.
pub(crate) trait Awaited {
    /// The kind of object in reports of deadlocks.
    const KIND: &'static str;

    fn waiters(&mut self) -> &mut Waiters;
}

/// Returns the result of `look`, or adds an entry for the waiter.
pub(crate) fn poll<S: Awaited, R>(
    state: &Lock<S>,
    seat: &mut Seat,
    context: &Context<'_>,
    mut look: impl FnMut(&mut S) -> Option<R>,
) -> Poll<R> {
    let mut locked = state.lock();
    let mut result = look(&mut locked);
    let mut new = None;
    if result.is_none() {
        if let Some((seat, _)) = &seat.0
            && !seat.is_over()
            && seat.will_wake(context.waker())
        {
            return Poll::Pending;
        }
        // A waker is users' code, also in its clone.
        drop(locked);
        new = Some(context.waker().clone());
        locked = state.lock();
        result = look(&mut locked);
    }
    let (before, registered) = match seat.0.take() {
        Some((key, registered)) => (Some(locked.waiters().leave(key)), Some(registered)),
        None => (None, None),
    };
    let key = match &result {
        None => new.take().map(|waker| locked.waiters().wait(waker)),
        Some(_) => None,
    };
    drop(locked);
    seat.0 = key.map(|key| {
        let register = || watch::wait(|| Thing::of(S::KIND, state));
        (key, registered.unwrap_or_else(register))
    });
    // Only now: if a waker panics, the wait has its seat.
    drop((before, new));
    result.map_or(Poll::Pending, Poll::Ready)
}

/// Gives up the wait.
pub(crate) fn leave<S: Awaited>(state: &Lock<S>, seat: &mut Seat) {
    if let Some((key, _)) = mem::take(seat).0 {
        let before = state.lock().waiters().leave(key);
        drop(before);
    }
}
