//! What a receiver has taken out of the shared queue and not yet handed over.
//!
//! **Problem.** A receiver that is faster than its senders takes each item alone, and each time the
//! queue's word travels from their processor to its own and back: all of them wait for that, for every
//! item.
//!
//! **Rejected.** To leave senders alone for some time after every drain: who waits for one item would
//! wait longer.
//!
//! **Protocol.** A drain that found a few items, and a sender at work at the same moment, makes the next
//! one wait for a moment, and twice as long if it finds the same, up to a limit. Any other drain makes
//! the next one wait half as long. So nobody waits who takes turns with a sender, on one thread or on
//! two.

use crate::node::Node;
use crate::{Batch, Queue};
use ganger_sync::hint;
use std::cell::{Cell, UnsafeCell};
use std::fmt;

/// From how many items on a drain was worth it.
const MANY: usize = 64;

/// How many pauses the shortest wait takes, and the longest: under two microseconds. Models have no
/// time to pass.
const SHORT: u32 = if cfg!(loom) { 0 } else { 4 };
const LONG: u32 = if cfg!(loom) { 0 } else { 32 };

/// Items that one thread has: the receiver's.
pub(crate) struct Backlog<T> {
    /// No reference to it leaves a method here, and no method runs code of anybody else's, an allocator's
    /// included, while it has one.
    items: UnsafeCell<Batch<T>>,
    /// How many pauses come before the next drain.
    pauses: Cell<u32>,
}

impl<T> Backlog<T> {
    pub(crate) const fn new() -> Self {
        Self {
            items: UnsafeCell::new(Batch::new()),
            pauses: Cell::new(0),
        }
    }

    /// Takes the oldest item, here or, if nothing is here, in the queue.
    #[inline]
    pub(crate) fn pop(&self, queue: &Queue<T>) -> Option<T> {
        // SAFETY: not `Sync`, and see the field.
        let items = unsafe { &mut *self.items.get() };
        if items.is_empty() {
            self.drain(queue, items);
        }
        let node = items.pop_node();
        // SAFETY: out of the list, and ours.
        node.map(|node| unsafe { Node::free(node) })
    }

    /// Takes everything, here and in the queue.
    pub(crate) fn take(&self, queue: &Queue<T>) -> Batch<T> {
        let mut batch = self.take_own();
        self.drain(queue, &mut batch);
        batch
    }

    /// Puts everything that is in the queue behind the items. Out of the way of what most pops do.
    #[inline(never)]
    fn drain(&self, queue: &Queue<T>, items: &mut Batch<T>) {
        let pauses = self.pauses.get();
        (0..pauses).for_each(|_| hint::spin_loop());
        let (batch, company) = queue.drain_in_company();
        self.pauses.set(if company && batch.len() < MANY {
            (2 * pauses).clamp(SHORT, LONG)
        } else {
            pauses / 2
        });
        items.append(batch);
    }

    /// Takes everything that is here.
    pub(crate) fn take_own(&self) -> Batch<T> {
        // SAFETY: as in `pop`.
        std::mem::take(unsafe { &mut *self.items.get() })
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
