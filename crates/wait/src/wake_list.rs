//! Claimed waiters, to be woken without a lock.

use crate::waiter::Waiter;
use ganger_sync::for_each_past_panics;
use std::mem;
use std::sync::Arc;

/// Wakes its waiters when it is dropped, even if a wake-up panics. The owner of a queue makes it
/// before it takes its lock, so the lock is released before the drop.
#[derive(Debug, Default)]
pub struct WakeList {
    /// A single waiter needs no memory.
    first: Option<Arc<Waiter>>,
    rest: Vec<Arc<Waiter>>,
}

impl WakeList {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a claimed waiter, to be woken.
    pub fn push(&mut self, waiter: Arc<Waiter>) {
        match &mut self.first {
            None => self.first = Some(waiter),
            Some(_) => self.rest.push(waiter),
        }
    }
}

impl Drop for WakeList {
    fn drop(&mut self) {
        let waiters = self
            .first
            .take()
            .into_iter()
            .chain(mem::take(&mut self.rest));
        for_each_past_panics(waiters, |it| it.wake());
    }
}
