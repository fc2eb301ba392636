//! The owner's side: push, pop, expose, grow.

use crate::known::Known;
use crate::ring::{MAX_CAPACITY, Ring, Slots};
use crate::shared::Shared;
use crate::stealer::Stealer;
use crate::word::{FIRST_INDEX, Snapshot, TakeBack};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, sized};
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;

/// How many slots a deque starts with unless told, and shrinks to.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const FIRST_CAPACITY: u32 = sized(16, 4) as u32;

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
    /// What `shared` has as `bottom`, where the compiler can keep it in a register.
    bottom: Cell<u32>,
    known: Known,
    /// Of the ring that `shared.owner.buffer` points to; only the owner replaces it.
    slots: Cell<Slots<T>>,
    /// The slots of indices below this are free as far as the owner knows. At least `bottom`. Every
    /// slot of an index that is more than a capacity below this has been copied out.
    ceiling: Cell<u32>,
}

// SAFETY: `slots` points into `shared`, which goes along; items are moved to the other thread, so
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
        Self::with_capacity(FIRST_CAPACITY as usize)
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
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        let ring = Box::new(Ring::new(capacity));
        let slots = Cell::new(**ring);
        fence::prepare();
        Self {
            shared: Arc::new(Shared::new(ring)),
            bottom: Cell::new(FIRST_INDEX),
            known: Known::nothing(),
            ceiling: Cell::new(FIRST_INDEX.wrapping_add(slots.get().capacity())),
            slots,
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
        let bottom = self.bottom.get();
        if bottom == self.ceiling.get() {
            return self.push_to_full(item);
        }
        // SAFETY: there is room.
        unsafe { self.put(bottom, item) };
    }

    /// As [`push`](Self::push), where no slot is known to be free. It is the last thing that `push` does, so that this
    /// one has nothing to keep for what follows.
    #[cold]
    #[inline(never)]
    fn push_to_full(&self, item: T) {
        let bottom = self.bottom.get();
        self.make_room(bottom, 1);
        // SAFETY: there is room now.
        unsafe { self.put(bottom, item) };
    }

    /// Adds an item.
    ///
    /// # Safety
    /// `bottom` is where the owner is, and there is room.
    #[inline]
    unsafe fn put(&self, bottom: u32, item: T) {
        // SAFETY: there is room, so no item is in this slot and no thief is copying it; and no
        // thief can claim it before `bottom` says that it is filled.
        unsafe { self.slots.get().write(bottom, MaybeUninit::new(item)) };
        self.set_bottom(bottom.wrapping_add(1));
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
        let index = self.bottom.get().wrapping_sub(1);
        let shared = &*self.shared;
        shared.set_bottom(index);
        // Pairs with the heavy fence of a thief between its announcement and its second look at
        // `bottom`: either it sees the store above, or the load below sees its announcement.
        // That is so where light fences are free, or else nothing is known of the word.
        fence::free();
        let is_owned = self.known.is_private(shared.word.load(), index) || self.pop_unknown(index);
        let bottom = if is_owned {
            index
        } else {
            index.wrapping_add(1)
        };
        self.bottom.set(bottom);
        // SAFETY: at or above the limit, and `bottom` excludes it from being exposed; or the limit
        // is at or below the index by our own CAS.
        is_owned.then(|| unsafe { self.take(index) })
    }

    /// Finishes a pop of the item at `index`, to which `bottom` points, when nothing is known of the
    /// word. Says whether the item is the owner's.
    #[inline]
    fn pop_unknown(&self, index: u32) -> bool {
        // Pairs as the fence in `pop`, on all platforms.
        fence::light();
        let seen = self.shared.word.load();
        if seen.is_private(index) {
            self.known.keep(seen);
            true
        } else {
            self.pop_exposed(seen, index)
        }
    }

    #[cold]
    fn pop_exposed(&self, seen: Snapshot, index: u32) -> bool {
        match self.shared.word.take_back(seen, index) {
            TakeBack::Owned => true,
            // Thieves may go on seeing a `bottom` below `head`, which counts as empty, too.
            TakeBack::Stolen => false,
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
        self.shared.word.expose(self.bottom.get());
    }

    /// How many items there are. Thieves may be taking some of them at this moment. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.word.load().len(self.bottom.get()) as usize
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
        self.slots.get().capacity() as usize
    }

    /// Gives back memory that a burst has left: moves to the smallest ring that holds the items,
    /// but none with less room than [`new`](Self::new) gives, unless that is the one there.
    ///
    /// A deque never shrinks by itself: growing again in the middle of the next burst would cost
    /// more than the memory is worth, and when that is not so only the owner knows. Call it when the
    /// deque has been almost empty for a while. Thieves may go on stealing; the old ring is freed
    /// when those that are reading it now have finished: by whoever then steals, or moves to another ring, or calls
    /// this, or drops a deque that has grown. Does not block. O(n) for n items.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// (0..1_000).for_each(|item| worker.push(item));
    /// while worker.len() > 20 {
    ///     worker.pop();
    /// }
    /// assert_eq!(worker.capacity(), 1_024);
    /// worker.shrink_to_fit();
    /// assert_eq!(worker.capacity(), 32);
    /// ```
    pub fn shrink_to_fit(&self) {
        let bottom = self.bottom.get();
        let head = self.shared.word.load().head();
        let needed = bottom.wrapping_sub(head).max(FIRST_CAPACITY);
        if needed.next_power_of_two() < self.slots.get().capacity() {
            self.move_to(needed, head, bottom);
        } else {
            self.shared.owner.buffer.collect();
        }
    }

    /// A handle for thieves. O(1).
    #[must_use]
    pub fn stealer(&self) -> Stealer<T> {
        Stealer::new(Arc::clone(&self.shared))
    }

    #[cfg(all(test, loom))]
    pub(crate) fn shared(&self) -> Arc<Shared<T>> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn belongs_to(&self, shared: &Arc<Shared<T>>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Makes room for `count` more items and returns how many there is room for.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    pub(crate) fn reserve(&self, count: u32) -> u32 {
        let bottom = self.bottom.get();
        if self.room(bottom) < count {
            self.make_room(bottom, count);
        }
        self.room(bottom)
    }

    /// Copies `count` slots from `first` on out of another deque's ring into the free slots of this
    /// one, where nobody sees them before [`publish`](Self::publish).
    ///
    /// # Safety
    /// There is room for them, the other ring is there, and nobody writes those slots of it.
    pub(crate) unsafe fn fill(&self, slots: Slots<T>, first: u32, count: u32) {
        let bottom = self.bottom.get();
        debug_assert!(count <= self.room(bottom));
        // SAFETY: the source by the contract of this function; the target as in `push`.
        unsafe { slots.copy_to(first, count, self.slots.get(), bottom) };
    }

    /// Makes `count` items that [`fill`](Self::fill) has copied part of this deque.
    pub(crate) fn publish(&self, count: u32) {
        let bottom = self.bottom.get();
        self.set_bottom(bottom.wrapping_add(count));
    }

    #[inline]
    fn set_bottom(&self, bottom: u32) {
        self.shared.set_bottom(bottom);
        self.bottom.set(bottom);
    }

    /// Moves the item out of its slot.
    ///
    /// # Safety
    /// The slot holds an item that is the owner's, and is read as an item once.
    #[inline]
    unsafe fn take(&self, index: u32) -> T {
        // SAFETY: only the owner writes; and by the contract of this function it is an item.
        unsafe { self.slots.get().read(index).assume_init() }
    }

    /// How many slots are free as far as the owner knows.
    fn room(&self, bottom: u32) -> u32 {
        self.ceiling.get().wrapping_sub(bottom)
    }

    #[cold]
    fn make_room(&self, bottom: u32, count: u32) {
        let (free_below, head) = self.shared.free_below();
        if let Some(floor) = free_below {
            let capacity = self.slots.get().capacity();
            self.ceiling.set(floor.wrapping_add(capacity));
        }
        if self.room(bottom) < count {
            self.grow(head, bottom, count);
        }
        debug_assert!(self.room(bottom) >= count);
    }

    /// Moves to a ring twice as large, or more if `count` wants it; but no larger if it would be half
    /// empty, which it can be when a thief that was suspended while copying keeps the slots below
    /// `head` taken.
    fn grow(&self, head: u32, bottom: u32, count: u32) {
        let needed = bottom.wrapping_sub(head).saturating_add(count);
        let capacity = self.slots.get().capacity();
        let capacity = if needed <= capacity / 2 {
            capacity
        } else {
            needed.max(capacity.saturating_mul(2).min(MAX_CAPACITY))
        };
        self.move_to(capacity, head, bottom);
    }

    /// Moves to a ring of which all slots below `head` are free, whatever thieves are copying: they
    /// go on reading the old one, which is never written again.
    fn move_to(&self, capacity: u32, head: u32, bottom: u32) {
        let ring = Box::new(Ring::new(capacity));
        let (old, new) = (self.slots.get(), **ring);
        // SAFETY: only the owner writes slots of the old ring, and nobody else has the new one yet.
        // A copy of what thieves claim meanwhile is never made an item: it lies below `head`.
        unsafe { old.copy_to(head, bottom.wrapping_sub(head), new, head) };
        // SAFETY: this is the owner, and `slots` is set anew before its next use.
        unsafe { self.shared.owner.buffer.replace(ring) };
        self.slots.set(new);
        self.ceiling.set(head.wrapping_add(new.capacity()));
        self.shared.owner.buffer.collect();
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
mod tests;
