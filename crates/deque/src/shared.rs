//! The state shared by the owner and the thieves of a deque.

use crate::counts::{Event, count};
use crate::reclaim::Buffer;
use crate::ring::Ring;
use crate::word::{FIRST_INDEX, Word};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU32, Ordering};

/// The shared half of a deque.
///
/// | field | owner | thieves |
/// |---|---|---|
/// | `bottom` | stores | read |
/// | `buffer` | stores | read |
/// | `word` | CAS, to expose and to take back | CAS, to announce and to claim |
/// | `released` | reads | add |
///
/// Fields with different writers have different cache lines. So a claim does not take `bottom` away
/// from the owner, and a release does not take away the word, which the owner's next pop reads.
pub(crate) struct Shared<T> {
    pub(crate) owner: CachePadded<OwnerSide<T>>,
    pub(crate) word: CachePadded<Word>,
    released: CachePadded<AtomicU32>,
}

/// Fields written only by the owner.
pub(crate) struct OwnerSide<T> {
    bottom: AtomicU32,
    pub(crate) buffer: Buffer<Ring<T>>,
}

// SAFETY: items move between threads, so `T: Send`. No two threads ever have a reference to the
// same item, so `T: Sync` is not needed. Slots are accessed only as the protocol allows.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: a shared reference moves items between threads, and gives out no reference to an item.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(ring: Box<Ring<T>>) -> Self {
        Self {
            owner: CachePadded::new(OwnerSide {
                bottom: AtomicU32::new(FIRST_INDEX),
                buffer: Buffer::new(ring),
            }),
            word: CachePadded::new(Word::new()),
            released: CachePadded::new(AtomicU32::new(FIRST_INDEX)),
        }
    }

    /// Returns `bottom`, for thieves; the owner knows it.
    #[inline]
    pub(crate) fn bottom(&self) -> u32 {
        // Ordering: Acquire pairs with the Release store in `set_bottom`: the items below, and the
        // ring that holds them, are visible.
        self.owner.bottom.load(Ordering::Acquire)
    }

    /// Moves `bottom`, up or down. For the owner.
    #[inline]
    pub(crate) fn set_bottom(&self, bottom: u32) {
        // Ordering: Release pairs with the Acquire load in `bottom`. A store of a pop needs it,
        // too: a thief that reads it may claim items below, and no other operation orders their
        // writes before the reads of the thief.
        self.owner.bottom.store(bottom, Ordering::Release);
    }

    /// Tells the owner that the thief has copied `items` items out of its claimed slots. For
    /// thieves.
    pub(crate) fn release(&self, items: u32) {
        // Ordering: Release pairs with the Acquire in `free_below`: the owner overwrites the slots
        // after the thief has read them.
        self.released.fetch_add(items, Ordering::Release);
        count(Event::Released);
    }

    /// Returns the index below which every slot has been copied out, and `head`. For the owner. The
    /// index is known only while no thief copies.
    ///
    /// `released` is a sum, and thieves release in any order: it must be read *before* `head`. In
    /// the other order, a later claim with a release could stand in for an earlier claim without
    /// one. In this order every item in the sum was claimed below `head`. So if the two are equal,
    /// the sum counts every item below `head`.
    pub(crate) fn free_below(&self) -> (Option<u32>, u32) {
        // Ordering: Acquire pairs with the Release in `release` of every counted thief: the
        // additions are a chain of RMWs. The load also keeps the load of the word behind it.
        let released = self.released.load(Ordering::Acquire);
        let head = self.word.load().head();
        ((released == head).then_some(head), head)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // The worker empties the deque when it is dropped, and every thief has a reference while it
        // copies. So only the rings are left, which drop no items.
        debug_assert_eq!(self.word.load().len(self.bottom()), 0);
    }
}
