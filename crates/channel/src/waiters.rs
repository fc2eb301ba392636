//! Those that wait until there is something new for all of them.

use crate::lock::Lock;
use crate::places::{Key, Line, Places, Stage, Told};
use crate::state::{Wake, Wakes};
use std::mem;
use std::task::{Context, Poll};

/// The places of those that wait.
pub(crate) struct Waiters {
    places: Places<()>,
    line: Line,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self {
            places: Places::new(),
            line: Line::default(),
        }
    }

    /// None of them waits any longer.
    pub(crate) fn end_all(&mut self) -> Wakes {
        let mut wakes = Wakes::new();
        while let Some((_, told)) = self.places.serve(&mut self.line, || Stage::Met) {
            wakes.push(Wake(told));
        }
        wakes
    }

    fn leave(&mut self, key: Key) -> Stage {
        self.places.take(&mut self.line, key).0
    }

    fn wait(&mut self, context: &Context<'_>) -> Key {
        let told = Told::One(context.waker().clone());
        self.places.push(&mut self.line, told, None)
    }
}

/// What has waiters, under its lock.
pub(crate) trait Awaited {
    fn waiters(&mut self) -> &mut Waiters;
}

/// Looks once: the result of `look`, or a place among those that wait.
pub(crate) fn poll<S: Awaited, R>(
    state: &Lock<S>,
    key: &mut Option<Key>,
    context: &Context<'_>,
    look: impl FnOnce(&mut S) -> Option<R>,
) -> Poll<R> {
    let mut state = state.lock();
    let result = look(&mut state);
    // The waker that it has left may be another one than this.
    let before = key.take().map(|key| state.waiters().leave(key));
    if result.is_none() {
        *key = Some(state.waiters().wait(context));
    }
    drop(state);
    drop(before);
    result.map_or(Poll::Pending, Poll::Ready)
}

/// The wait is given up.
pub(crate) fn leave<S: Awaited>(state: &Lock<S>, key: &mut Option<Key>) {
    if let Some(key) = mem::take(key) {
        let before = state.lock().waiters().leave(key);
        drop(before);
    }
}
