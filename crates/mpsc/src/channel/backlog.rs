//! The backlog: items that a receiver has taken out of the shared queue and not yet handed over.
//!
//! **Problem.** A receiver that is faster than its senders takes each item alone. Each time the
//! queue's word travels from a sender's processor to the receiver's and back, and all of them wait
//! for it, for every item.
//!
//! **Rejected.** A pause after every drain: a receiver that waits for a single item would wait
//! longer.
//!
//! **Protocol.** A drain that finds few items, and a sender at work at the same moment, makes the
//! next drain pause, twice as long each time up to a limit. Any other drain halves the pause. So a
//! receiver that takes turns with a sender, on the same thread or another, does not pause.

use crate::list::{Batch, Node};
use crate::queue::Queue;
use ganger_sync::hint;
use std::cell::{Cell, UnsafeCell};
use std::fmt;

/// A drain of this many items is worth its cost.
const MANY: usize = 64;

/// The spins in the shortest and the longest pause: under two microseconds. In a model no time
/// passes.
const SHORT: u32 = if cfg!(ganger_loom) { 0 } else { 4 };
const LONG: u32 = if cfg!(ganger_loom) { 0 } else { 32 };

/// The receiver's items.
pub(super) struct Backlog<T> {
    /// No reference to the items leaves a method, and no method runs foreign code, such as an
    /// allocator, while it has a reference.
    items: UnsafeCell<Batch<T>>,
    /// The spins before the next drain.
    pauses: Cell<u32>,
}

impl<T> Backlog<T> {
    pub(super) const fn new() -> Self {
        Self {
            items: UnsafeCell::new(Batch::new()),
            pauses: Cell::new(0),
        }
    }

    /// Takes the oldest item: from the backlog, or if this is empty, from the queue.
    #[inline]
    pub(super) fn pop(&self, queue: &Queue<T>) -> Option<T> {
        // SAFETY: a backlog is not `Sync`, and no other reference exists: see the field.
        let items = unsafe { &mut *self.items.get() };
        if items.is_empty() {
            self.drain(queue, items);
        }
        let node = items.pop_node();
        // SAFETY: the node is out of the list, and this thread's.
        node.map(|node| unsafe { Node::free(node) })
    }

    /// Takes everything, from the backlog and from the queue.
    pub(super) fn take(&self, queue: &Queue<T>) -> Batch<T> {
        let mut batch = self.take_own();
        self.drain(queue, &mut batch);
        batch
    }

    /// Moves everything from the queue behind the items. A separate function, so that the common
    /// path of a pop stays small.
    #[inline(never)]
    fn drain(&self, queue: &Queue<T>, items: &mut Batch<T>) {
        let pauses = self.pauses.get();
        (0..pauses).for_each(|_| hint::spin_loop());
        let (batch, contended) = queue.drain_contended();
        self.pauses.set(if contended && batch.len() < MANY {
            (2 * pauses).clamp(SHORT, LONG)
        } else {
            pauses / 2
        });
        items.append(batch);
    }

    /// Takes everything in the backlog.
    pub(super) fn take_own(&self) -> Batch<T> {
        // SAFETY: a backlog is not `Sync`, and no other reference exists: see the field.
        std::mem::take(unsafe { &mut *self.items.get() })
    }

    pub(super) fn len(&self) -> usize {
        // SAFETY: a backlog is not `Sync`, and no other reference exists: see the field.
        unsafe { &*self.items.get() }.len()
    }
}

impl<T> fmt::Debug for Backlog<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.len().fmt(f)
    }
}
