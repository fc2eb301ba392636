//! Waiters that have been chosen, to be told when no lock is held any more.

use crate::Waiter;
use std::sync::Arc;

/// Waiters that are told when this is dropped, also when a wake-up panics. The owner of a queue
/// makes it before it takes its lock, so that it is dropped after the lock.
#[derive(Debug, Default)]
pub struct Told {
    /// One needs no memory.
    first: Option<Arc<Waiter>>,
    rest: Vec<Arc<Waiter>>,
}

impl Told {
    /// None so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Has been chosen, and is to be told.
    pub fn push(&mut self, waiter: Arc<Waiter>) {
        match &mut self.first {
            None => self.first = Some(waiter),
            Some(_) => self.rest.push(waiter),
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        struct Rest(std::vec::IntoIter<Arc<Waiter>>);
        impl Drop for Rest {
            fn drop(&mut self) {
                self.0.by_ref().for_each(|it| it.tell());
            }
        }
        let _rest = Rest(std::mem::take(&mut self.rest).into_iter());
        if let Some(first) = self.first.take() {
            first.tell();
        }
    }
}
