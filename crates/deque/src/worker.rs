//! The owner's side: push, pop, expose, grow.

use crate::known::Known;
use crate::ring::{MAX_CAPACITY, Ring, Slots};
use crate::shared::Shared;
use crate::word::{FIRST_INDEX, Snapshot, TakeBack};
use ganger_sync::sync::Arc;
use ganger_sync::{fence, sized};
use std::cell::Cell;
use std::fmt;
use std::mem::MaybeUninit;

/// How many slots a deque has by default, and at least after it has shrunk.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const FIRST_CAPACITY: u32 = sized(16, 4) as u32;

/// The owner's handle of a deque: pushes and pops at one end, last in, first out.
///
/// A deque has a single `Worker`, which can be sent to another thread: one thread at a time uses
/// the `Worker`.
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
/// Threads cannot share it:
///
/// ```compile_fail,E0277
/// fn shared_by_threads<S: Sync>(_: S) {}
/// shared_by_threads(ganger_deque::Worker::<u32>::new());
/// ```
///
/// Dropping it drops all items left by thieves, the newest first, each exactly once. Remaining
/// stealers find the deque empty. If the destructor of an item panics, the other items are dropped
/// while the panic unwinds; a second panic then aborts the process, as with a `Vec`.
pub struct Worker<T> {
    pub(crate) shared: Arc<Shared<T>>,
    /// A copy of `bottom` in `shared`, which the compiler can keep in a register.
    bottom: Cell<u32>,
    known: Known,
    /// The slots of the ring at `shared.owner.buffer`. Only the owner replaces it.
    slots: Cell<Slots<T>>,
    /// The slots of indices from `bottom` to below `ceiling` are free. At least `bottom`. Every
    /// slot of an index more than a capacity below `ceiling` has been copied out.
    ceiling: Cell<u32>,
}

// SAFETY: `slots` points into `shared`, which moves with it. Items move to the other thread, so `T:
// Send`. The cells make it `!Sync`.
unsafe impl<T: Send> Send for Worker<T> {}

impl<T> Worker<T> {
    /// Creates an empty deque with room for a few items.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::<u64>::new();
    /// assert!(worker.is_empty());
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(FIRST_CAPACITY as usize)
    }

    /// Creates an empty deque with room for `capacity` items, rounded up to a power of two.
    ///
    /// # Panics
    /// With "capacity overflow" beyond 2^30 items, or beyond the address space.
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

    /// Adds an item as the newest. Never blocks.
    ///
    /// O(1), amortised; no RMW and no fence, unless the ring is full.
    ///
    /// # Panics
    /// With "capacity overflow" beyond 2^30 items, or beyond the address space. The item is then
    /// dropped, and the deque is unchanged.
    #[inline]
    pub fn push(&self, item: T) {
        let bottom = self.bottom.get();
        if bottom == self.ceiling.get() {
            return self.push_to_full(item);
        }
        // SAFETY: the ring has room.
        unsafe { self.put(bottom, item) };
    }

    /// Pushes if no slot is known to be free. `push` calls it last, and so keeps nothing in
    /// registers across the call.
    #[cold]
    #[inline(never)]
    fn push_to_full(&self, item: T) {
        let bottom = self.bottom.get();
        self.make_room(bottom, 1);
        // SAFETY: the ring has room now.
        unsafe { self.put(bottom, item) };
    }

    /// Adds an item.
    ///
    /// # Safety
    /// `bottom` is the owner's, and the ring has room.
    #[inline]
    unsafe fn put(&self, bottom: u32, item: T) {
        // SAFETY: the ring has room, so no item is in this slot, and no thief copies it. No thief
        // can claim it before `bottom` includes it.
        unsafe { self.slots.get().write(bottom, MaybeUninit::new(item)) };
        self.set_bottom(bottom.wrapping_add(1));
    }

    /// Takes the newest item, or returns `None` if the deque is empty. Never blocks.
    ///
    /// O(1): a light fence and no RMW, unless the item is exposed. Popping n exposed items takes
    /// O(log n) CASes in all, and one more for each steal meanwhile.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// worker.push("older");
    /// worker.push("newer");
    /// assert_eq!(worker.pop(), Some("newer"));
    /// ```
    #[inline]
    pub fn pop(&self) -> Option<T> {
        // SAFETY: the item is the owner's, and `pop_index` returns its index once.
        self.pop_index().map(|index| unsafe { self.take(index) })
    }

    /// Takes the newest item out of the deque, and leaves it in its slot.
    #[inline(always)]
    fn pop_index(&self) -> Option<u32> {
        let index = self.bottom.get().wrapping_sub(1);
        let shared = &*self.shared;
        shared.set_bottom(index);
        // Pairs with the heavy fence of a thief between its announcement and its second look at
        // `bottom`: the thief sees this store, or the owner's next load sees the announcement. This
        // holds if light fences are free. Otherwise `known` has no word.
        fence::free();
        let is_owned = self.known.is_private(shared.word.load(), index) || self.pop_unknown(index);
        let bottom = if is_owned {
            index
        } else {
            index.wrapping_add(1)
        };
        self.bottom.set(bottom);
        // The index is at or above the limit, and `bottom` keeps it from being exposed; or the
        // owner's CAS has moved the limit to the index or below.
        is_owned.then_some(index)
    }

    /// Ends a pop of the item at `index`, to which `bottom` points, if the word is not the known
    /// word. Returns whether the item is the owner's.
    #[inline]
    fn pop_unknown(&self, index: u32) -> bool {
        // Pairs with the heavy fence of a thief, as in `pop_index`, on all platforms.
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
            // Thieves may now see a `bottom` below `head`, which counts as empty.
            TakeBack::Stolen => false,
        }
    }

    /// Lets thieves claim every item by one CAS each, up to the 32,767 oldest items.
    ///
    /// Otherwise the first thief exposes them, at the price of a heavy fence. Call this function if
    /// a thread is known to look for work, and before the owner steals from itself. Never blocks;
    /// O(1), at most one CAS, and one more for each steal meanwhile.
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

    /// Returns whether a thief may take an item without a heavy fence. O(1), one load.
    ///
    /// ```
    /// let worker = ganger_deque::Worker::new();
    /// worker.push(1);
    /// assert!(!worker.has_exposed());
    /// worker.expose();
    /// assert!(worker.has_exposed());
    /// ```
    #[must_use]
    #[inline]
    pub fn has_exposed(&self) -> bool {
        self.shared.word.load().is_open()
    }

    /// Returns the number of items. Thieves may take some of them at this moment. O(1).
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.word.load().len(self.bottom.get()) as usize
    }

    /// Returns whether the deque is empty. Once true, it stays true until the owner pushes. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many items the deque can hold without growing. O(1).
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.get().capacity() as usize
    }

    /// Gives back memory after a burst: moves to the smallest ring that holds the items. The new
    /// ring has at least the room of a [`new`](Self::new) deque, and is never larger than the
    /// present ring.
    ///
    /// A deque never shrinks by itself, because growing again in the next burst costs more than the
    /// memory is worth. Call this function when the deque has been almost empty for a while.
    /// Thieves may go on stealing. The old ring can be freed once the thieves that read it have
    /// finished. The next thread to steal, to move to another ring, to call this function, or to
    /// drop a deque that has grown frees it. Never blocks. O(n) for n items.
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

    #[cfg(all(test, ganger_loom))]
    pub(crate) fn shared(&self) -> Arc<Shared<T>> {
        Arc::clone(&self.shared)
    }

    pub(crate) fn belongs_to(&self, shared: &Arc<Shared<T>>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// Makes room for `count` more items and returns the number of free slots.
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

    /// Copies `count` slots from `first` on out of another deque's ring into free slots of this
    /// deque. No thief sees them before [`publish`](Self::publish).
    ///
    /// # Safety
    /// This ring has room for them, the other ring exists, and no thread writes its copied slots.
    pub(crate) unsafe fn fill(&self, slots: Slots<T>, first: u32, count: u32) {
        let bottom = self.bottom.get();
        debug_assert!(count <= self.room(bottom));
        // SAFETY: the source by the contract of this function. The target has room, so no item is
        // in these slots, and no thief copies them.
        unsafe { slots.copy_to(first, count, self.slots.get(), bottom) };
    }

    /// Makes the `count` items copied by [`fill`](Self::fill) part of this deque.
    pub(crate) fn publish(&self, count: u32) {
        let bottom = self.bottom.get();
        self.set_bottom(bottom.wrapping_add(count));
    }

    /// Drops each item in place: an item may be larger than the stack.
    fn drop_items(&self) {
        while let Some(index) = self.pop_index() {
            // SAFETY: the item is the owner's, and `pop_index` returns its index once.
            unsafe { self.slots.get().drop_item(index) };
        }
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
        // SAFETY: only the owner writes slots, and by the contract of this function the slot holds
        // an item.
        unsafe { self.slots.get().read(index).assume_init() }
    }

    /// Returns how many slots are free as far as the owner knows.
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

    /// Moves to a ring twice as large, or larger if `count` needs it. If the present ring is at
    /// most half full, moves to a ring of the same size: a thief that is suspended in a copy keeps
    /// the slots below `head` taken.
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

    /// Moves to a ring in which all slots below `head` are free. Copying thieves go on reading the
    /// old ring, which is never written again.
    fn move_to(&self, capacity: u32, head: u32, bottom: u32) {
        let ring = Box::new(Ring::new(capacity));
        let (old, new) = (self.slots.get(), **ring);
        // SAFETY: only the owner writes slots of the old ring, and no other thread has the new ring
        // yet. A copied item that thieves claim meanwhile lies below `head`, and is never used as
        // an item.
        unsafe { old.copy_to(head, bottom.wrapping_sub(head), new, head) };
        // SAFETY: this is the owner, which sets `slots` before it uses them again.
        unsafe { self.shared.owner.buffer.replace(ring) };
        self.slots.set(new);
        self.ceiling.set(head.wrapping_add(new.capacity()));
        self.shared.owner.buffer.collect();
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        /// Drops the remaining items, also if the destructor of an item unwinds through it.
        struct Rest<'a, T>(&'a Worker<T>);

        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.0.drop_items();
            }
        }

        let rest = Rest(self);
        rest.0.drop_items();
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

#[cfg(all(test, not(ganger_loom)))]
mod tests;
