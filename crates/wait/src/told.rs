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
        /// Goes on with those that are left, also when one panics.
        struct Rest(Option<Arc<Waiter>>, std::vec::IntoIter<Arc<Waiter>>);
        impl Rest {
            fn tell(&mut self) {
                while let Some(waiter) = self.0.take().or_else(|| self.1.next()) {
                    waiter.tell();
                }
            }
        }
        impl Drop for Rest {
            fn drop(&mut self) {
                self.tell();
            }
        }
        let rest = std::mem::take(&mut self.rest).into_iter();
        Rest(self.first.take(), rest).tell();
    }
}
