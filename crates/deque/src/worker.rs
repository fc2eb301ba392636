//! The owner's side: push, pop, expose, grow.

use crate::ring::Ring;
use crate::shared::Shared;
use crate::stealer::Stealer;
use crate::word::{FIRST_INDEX, Snapshot, TakeBack};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, sized};
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// How many slots a deque starts with unless told.
const FIRST_CAPACITY: usize = sized(16, 4);

/// The owner's handle of a deque: pushes and pops at one end, last in, first out.
///
/// There is one for each deque. It can be sent to another thread, and used by one thread at a time.
///
/// ```
/// use ganger_deque::Worker;
///
/// let worker = Worker::new();
/// worker.push(1);
/// worker.push(2);
/// assert_eq!(worker.pop(), Some(2));
/// assert_eq!(worker.pop(), Some(1));
/// assert_eq!(worker.pop(), None);
/// ```
///
/// It cannot be shared:
///
/// ```compile_fail,E0277
/// fn shared_by_threads<S: Sync>(_: S) {}
/// shared_by_threads(ganger_deque::Worker::<u32>::new());
/// ```
///
/// Dropping it drops the items that nobody has stolen, newest first, each exactly once; stealers
/// that remain find the deque empty. If the destructor of an item panics, the others are dropped
/// while the panic unwinds; a second panic then aborts the process, as it does with a `Vec`.
pub struct Worker<T> {
    shared: Arc<Shared<T>>,
    /// What `shared.owner.buffer` points to; only the owner replaces it.
    ring: Cell<NonNull<Ring<T>>>,
    /// Every slot of `ring` that belongs to an index below this has been copied out. At most
    /// `head`, and at most a capacity below `bottom`.
    floor: Cell<u32>,
}

// SAFETY: `ring` points into `shared`, which goes along; items are moved to the other thread, so
// `T: Send`. The cells make it `!Sync`.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// An empty deque with room for a few items.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::<u64>::new();
    /// assert!(worker.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(FIRST_CAPACITY)
    }

    /// An empty deque with room for `capacity` items, rounded up to a power of two.
    ///
    /// # Panics
    /// With "capacity overflow" beyond 2^30 items, or what fits the address space.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::<u64>::with_capacity(100);
    /// assert_eq!(worker.capacity(), 128);
    /// ```
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        let shared = Arc::new(Shared::new(Box::new(Ring::new(capacity))));
        let ring = Cell::new(shared.owner.buffer.owned());
        Self {
            shared,
            ring,
            floor: Cell::new(FIRST_INDEX),
        }
    }

    /// Adds an item as the newest. Does not block.
    ///
    /// O(1), amortised; no RMW and no fence, unless the ring is full.
    ///
    /// # Panics
    /// With "capacity overflow" beyond 2^30 items, or what fits the address space. The item is
    /// dropped then, and the deque is as it was.
    #[inline]
    pub fn push(&self, item: T) {
        let bottom = self.shared.own_bottom();
        if self.room(bottom) == 0 {
            self.make_room(bottom, 1);
        }
        // SAFETY: there is room, so no item is in this slot and no thief is copying it; and no
        // thief can claim it before `bottom` says that it is filled.
        unsafe { self.ring().write(bottom, MaybeUninit::new(item)) };
        self.shared.set_bottom(bottom.wrapping_add(1));
    }

    /// Takes the newest item, or returns `None` if there is none. Does not block.
    ///
    /// O(1): a light fence and no RMW, unless the item is exposed. Popping n exposed items takes
    /// O(log n) CASes in all; each can be repeated as often as thieves succeed meanwhile.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// worker.push("older");
    /// worker.push("newer");
    /// assert_eq!(worker.pop(), Some("newer"));
    /// ```
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let index = self.shared.own_bottom().wrapping_sub(1);
        self.shared.set_bottom(index);
        // Pairs with the heavy fence of a thief between its announcement and its second look at
        // `bottom`: either it sees the store above, or the load below sees its announcement.
        fence::light();
        let seen = self.shared.word.load();
        if seen.is_private(index) {
            // SAFETY: at or above the limit, and `bottom` excludes it from being exposed.
            Some(unsafe { self.take(index) })
        } else {
            self.pop_exposed(seen, index)
        }
    }

    #[cold]
    fn pop_exposed(&self, seen: Snapshot, index: u32) -> Option<T> {
        match self.shared.word.take_back(seen, index) {
            // SAFETY: the limit is at or below the index, by our own CAS.
            TakeBack::Owned => Some(unsafe { self.take(index) }),
            TakeBack::Stolen => {
                self.shared.set_bottom(index.wrapping_add(1));
                None
            }
        }
    }

    /// Makes every item claimable by thieves in one go (the 32,767 oldest, if there are more).
    ///
    /// Without it the first thief to come makes them so, at the price of a heavy fence. Worth
    /// calling when somebody is known to be looking for work, and before the owner steals from
    /// itself. Does not block; O(1), at most one CAS unless thieves succeed meanwhile.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// worker.push(1);
    /// worker.push(2);
    /// worker.expose();
    /// assert_eq!(worker.stealer().steal().success(), Some(1));
    /// assert_eq!(worker.pop(), Some(2));
    /// ```
    pub fn expose(&self) {
        self.shared.word.expose(self.shared.own_bottom());
    }

    /// How many items there are. Thieves may be taking some of them at this moment. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.word.load().len(self.shared.own_bottom()) as usize
    }

    /// Whether there are no items. While it returns `true` that remains so until the owner pushes.
    /// O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items the deque can hold without growing. O(1).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring().capacity() as usize
    }

    /// A handle for thieves. O(1).
    #[must_use]
    pub fn stealer(&self) -> Stealer<T> {
        Stealer::new(Arc::clone(&self.shared))
    }

    pub(crate) fn belongs_to(&self, shared: &Arc<Shared<T>>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Makes room for `count` more items and returns how many there is room for.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    pub(crate) fn reserve(&self, count: u32) -> u32 {
        let bottom = self.shared.own_bottom();
        if self.room(bottom) < count {
            self.make_room(bottom, count);
        }
        self.room(bottom)
    }

    /// Copies `count` slots from `first` on out of another deque's ring into the free slots of this
    /// one, where nobody sees them before [`publish`](Self::publish).
    ///
    /// # Safety
    /// There is room for them, and nobody writes those slots of `ring`.
    pub(crate) unsafe fn fill(&self, ring: &Ring<T>, first: u32, count: u32) {
        let bottom = self.shared.own_bottom();
        debug_assert!(count <= self.room(bottom));
        // SAFETY: the source by the contract of this function; the target as in `push`.
        unsafe { ring.copy_to(first, count, self.ring(), bottom) };
    }

    /// Makes `count` items that [`fill`](Self::fill) has copied part of this deque.
    pub(crate) fn publish(&self, count: u32) {
        let bottom = self.shared.own_bottom();
        self.shared.set_bottom(bottom.wrapping_add(count));
    }

    /// Moves the item out of its slot.
    ///
    /// # Safety
    /// The slot holds an item that is the owner's, and is read as an item once.
    #[inline]
    unsafe fn take(&self, index: u32) -> T {
        // SAFETY: only the owner writes; and by the contract of this function it is an item.
        unsafe { self.ring().read(index).assume_init() }
    }

    #[inline]
    fn ring(&self) -> &Ring<T> {
        // SAFETY: it is what `shared` points to; only `grow` replaces it, in which no reference
        // outlives the replacement.
        unsafe { self.ring.get().as_ref() }
    }

    /// How many slots are free as far as the owner knows.
    #[inline]
    fn room(&self, bottom: u32) -> u32 {
        self.ring().capacity() - bottom.wrapping_sub(self.floor.get())
    }

    #[cold]
    fn make_room(&self, bottom: u32, count: u32) {
        let (free_below, head) = self.shared.free_below();
        if let Some(floor) = free_below {
            self.floor.set(floor);
        }
        if self.room(bottom) < count {
            self.grow(head, bottom, count);
        }
        debug_assert!(self.room(bottom) >= count);
    }

    /// Moves to a ring of which all slots below `head` are free, whatever thieves are copying: they
    /// go on reading the old one, which is never written again.
    ///
    /// Twice as large, or more if `count` wants it; but no larger if it would be half empty, which
    /// it can be when a thief that was suspended while copying keeps the slots below `head` taken.
    fn grow(&self, head: u32, bottom: u32, count: u32) {
        let length = bottom.wrapping_sub(head);
        let capacity = self.ring().capacity();
        let needed = length.saturating_add(count);
        let capacity = if needed <= capacity / 2 {
            capacity
        } else {
            needed.max(capacity.saturating_mul(2))
        };
        let next = Box::new(Ring::new(capacity));
        // SAFETY: only the owner writes slots of the old ring, and nobody else has the new one yet.
        // A copy of what thieves claim meanwhile is never made an item: it lies below `head`.
        unsafe { self.ring().copy_to(head, length, &next, head) };
        // SAFETY: this is the owner, and `ring` is set anew before its next use.
        unsafe { self.shared.owner.buffer.replace(next) };
        self.ring.set(self.shared.owner.buffer.owned());
        self.floor.set(head);
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        /// Drops what is left, also when the destructor of an item unwinds through it.
        struct Rest<'a, T>(&'a Worker<T>);

        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                while let Some(item) = self.0.pop() {
                    drop(item);
                }
            }
        }

        let rest = Rest(self);
        while let Some(item) = rest.0.pop() {
            drop(item);
        }
    }
}

impl<T> Default for Worker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::word::Claim;

    /// A thief that is suspended while it copies keeps the slots below `head` taken for good. The
    /// owner moves to rings of the same size as long as they are large enough.
    #[test]
    fn a_suspended_thief_does_not_make_the_ring_grow_without_end() {
        let worker = Worker::with_capacity(8);
        worker.push(0);
        worker.expose();
        let shared = &worker.shared;
        // Pinned, as every real thief is.
        let guard = crate::reclaim::pin();
        let claim = shared.word.claim(shared.word.load(), shared.bottom(), 1);
        assert!(matches!(claim, Claim::Claimed { count: 1, .. }));
        for item in 0..10_000 {
            worker.push(item);
            assert_eq!(worker.stealer().steal().success(), Some(item));
        }
        assert_eq!(worker.capacity(), 8);

        shared.release(1);
        drop(guard);
        let ring = worker.ring.get();
        for item in 0..10_000 {
            worker.push(item);
            assert_eq!(worker.stealer().steal().success(), Some(item));
        }
        assert_eq!(worker.ring.get(), ring, "all slots are free: no new ring");
    }

    #[test]
    fn a_ring_grows_to_what_is_asked_for() {
        let worker = Worker::with_capacity(4);
        for item in 0..3 {
            worker.push(item);
        }
        assert_eq!(worker.reserve(1), 1);
        assert_eq!(worker.capacity(), 4);
        assert_eq!(worker.reserve(100), 125);
        assert_eq!(worker.capacity(), 128);
        assert_eq!(worker.pop(), Some(2));
    }
}
