//! What a receiver has taken out of the shared queue and not yet handed over.
//!
//! **Problem.** A drain gives a chain of nodes, the newest first, of which the oldest is wanted first.
//! Turning the links round and then following them again means to wait for memory twice an item.
//!
//! **Rejected.** A `VecDeque`: the items would have to go in from the back, and how many there are is
//! not known before the end.
//!
//! **Protocol.** One walk along the chain puts the items into a vector, the newest at the bottom, and
//! gives all nodes back at once. Popping from the top gives the oldest. It is filled only when it is
//! empty, so nothing newer ever gets on top.

use crate::{Batch, Queue};
use std::cell::UnsafeCell;
use std::fmt;

/// How much memory an empty backlog keeps for the next drain, in bytes.
const KEPT: usize = 16 * 1_024;

/// Items that one thread has: the receiver's.
pub(crate) struct Backlog<T> {
    /// The newest first. No reference to it leaves a method here, and no method runs code of
    /// anybody else's while it has one, but for the allocator, which has no receiver at hand.
    items: UnsafeCell<Vec<T>>,
}

impl<T> Backlog<T> {
    /// Items without size take no memory however many there are.
    const KEPT_ITEMS: usize = match KEPT.checked_div(size_of::<T>()) {
        Some(items) => items,
        None => usize::MAX,
    };

    pub(crate) const fn new() -> Self {
        Self {
            items: UnsafeCell::new(Vec::new()),
        }
    }

    /// Takes the oldest item, here or, if nothing is here, in the queue.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T>) -> Option<T> {
        // SAFETY: not `Sync`, and see the field.
        let items = unsafe { &mut *self.items.get() };
        if items.is_empty() || items.capacity() > Self::KEPT_ITEMS {
            Self::refill(items, queue);
        }
        items.pop()
    }

    /// What a pop does besides popping, when there is something to do: not often.
    #[inline(never)]
    fn refill(items: &mut Vec<T>, queue: &Queue<T>) {
        if items.is_empty() {
            queue.drain_newest_first(items);
        }
        Self::trim(items);
    }

    /// Takes everything, here and in the queue.
    pub(crate) fn take(&self, queue: &Queue<T>) -> Batch<T> {
        let mut batch = self.take_own();
        batch.append(queue.drain());
        batch
    }

    /// Takes everything that is here.
    pub(crate) fn take_own(&self) -> Batch<T> {
        // SAFETY: as in `pop`.
        let items = unsafe { &mut *self.items.get() };
        let batch = items.drain(..).rev().collect();
        Self::trim(items);
        batch
    }

    /// Returns memory while a burst goes by, half of it each time, so that a pop stays O(1).
    fn trim(items: &mut Vec<T>) {
        if items.capacity() > Self::KEPT_ITEMS && items.len() <= items.capacity() / 4 {
            items.shrink_to((2 * items.len()).max(Self::KEPT_ITEMS));
        }
    }

    /// Drops everything that is here, the oldest first. If the drop of one panics, the others are
    /// dropped all the same.
    pub(crate) fn clear(&mut self) {
        self.items.get_mut().reverse();
        self.items.get_mut().clear();
    }

    pub(crate) fn len(&self) -> usize {
        // SAFETY: as in `pop`.
        unsafe { &*self.items.get() }.len()
    }
}

impl<T> fmt::Debug for Backlog<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.len().fmt(f)
    }
}
