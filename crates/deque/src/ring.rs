//! The ring of slots, in which the indices of the deque wrap around.
//!
//! A ring does not know which slots hold items. `bottom`, the word and `released` tell it, and the
//! safety contracts of callers rest on them. A ring never drops an item.

use ganger_sync::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;

/// The largest number of slots in a ring: the difference of two indices must fit an `i32`.
pub(crate) const MAX_CAPACITY: u32 = 1 << 30;

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The memory of the slots.
pub(crate) struct Ring<T> {
    slots: Slots<T>,
}

/// A ring's slots, by address; their number is a power of two. The owner keeps a copy, which saves
/// a load for each push and pop.
///
/// | thread | what it does with a slot |
/// |---|---|
/// | owner | writes one that holds nothing; reads one that is its own |
/// | thief | reads one that it has claimed |
pub(crate) struct Slots<T> {
    first: NonNull<Slot<T>>,
    /// The number of slots, less one.
    mask: u32,
}

impl<T> Ring<T> {
    /// Allocates a ring with at least `capacity` slots.
    ///
    /// # Panics
    /// With "capacity overflow" if `capacity` exceeds [`MAX_CAPACITY`] or the address space.
    #[track_caller]
    pub(crate) fn new(capacity: u32) -> Self {
        assert!(capacity <= MAX_CAPACITY, "capacity overflow");
        let capacity = capacity.next_power_of_two();
        let first = NonNull::from(Box::leak(allocate::<T>(capacity as usize))).cast();
        let mask = capacity - 1;
        Self {
            slots: Slots { first, mask },
        }
    }
}

impl<T> Deref for Ring<T> {
    type Target = Slots<T>;

    fn deref(&self) -> &Slots<T> {
        &self.slots
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let slots = NonNull::slice_from_raw_parts(self.slots.first, self.capacity() as usize);
        // SAFETY: `new` has leaked it, and the ring owns it.
        drop(unsafe { Box::from_raw(slots.as_ptr()) });
    }
}

impl<T> Slots<T> {
    /// Returns the number of slots.
    #[inline]
    pub(crate) fn capacity(self) -> u32 {
        self.mask + 1
    }

    /// Puts an item into the slot of `index`, without dropping the slot's old item.
    ///
    /// # Safety
    /// The ring exists, and no other thread reads or writes this slot at the same time.
    #[inline]
    pub(crate) unsafe fn write(self, index: u32, item: MaybeUninit<T>) {
        // SAFETY: by the contract of this function the ring exists and the access is exclusive.
        unsafe { self.slot(index).as_ref() }.with_mut(|slot| unsafe { *slot = item });
    }

    /// Copies the slot of `index`. The copy is an item if the slot holds an item. Only one copy of
    /// an item may be used as an item.
    ///
    /// # Safety
    /// The ring exists, and no thread writes this slot at the same time.
    #[inline]
    pub(crate) unsafe fn read(self, index: u32) -> MaybeUninit<T> {
        // SAFETY: by the contract of this function the ring exists, and no thread writes the slot.
        // The copy is not yet an item, so a second copy elsewhere does no harm.
        unsafe { self.slot(index).as_ref() }.with(|slot| unsafe { slot.read() })
    }

    /// Drops the item in the slot of `index` in place.
    ///
    /// # Safety
    /// As for [`write`](Self::write); and the slot holds an item, which no thread uses again.
    pub(crate) unsafe fn drop_item(self, index: u32) {
        // SAFETY: by the contract of this function.
        let drop_it = |slot: *mut MaybeUninit<T>| unsafe { (*slot).assume_init_drop() };
        // SAFETY: by the contract of this function the ring exists.
        unsafe { self.slot(index).as_ref() }.with_mut(drop_it);
    }

    /// Copies the slots of `count` indices from `first` on to the slots of the indices from `to` on
    /// in `target`, which is another ring.
    ///
    /// # Safety
    /// The rings exist. At the same time no thread writes the source slots, and no other thread
    /// reads or writes the target slots.
    pub(crate) unsafe fn copy_to(self, mut first: u32, mut count: u32, target: Self, mut to: u32) {
        debug_assert!(count <= self.capacity() && count <= target.capacity());
        while count > 0 {
            let run = count.min(self.run(first)).min(target.run(to));
            // SAFETY: by the contract of this function. Neither run goes past the end of its ring.
            unsafe { copy_run(self.slot(first), target.slot(to), run) };
            first = first.wrapping_add(run);
            to = to.wrapping_add(run);
            count -= run;
        }
    }

    /// Returns how many slots lie from the slot of `index` to the end of the ring.
    fn run(self, index: u32) -> u32 {
        self.capacity() - (index & self.mask)
    }

    #[inline]
    fn slot(self, index: u32) -> NonNull<Slot<T>> {
        // SAFETY: the mask keeps the offset within the ring.
        unsafe { self.first.add((index & self.mask) as usize) }
    }
}

impl<T> Clone for Slots<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<T> {}

/// Allocates slots without touching their memory, so a slot needs no page before its first item.
/// Slots made one by one would each go through the stack, which may be smaller than an item.
#[cfg(not(ganger_loom))]
#[track_caller]
fn allocate<T>(capacity: usize) -> Box<[Slot<T>]> {
    let mut slots: Vec<Slot<T>> = Vec::with_capacity(capacity);
    // SAFETY: the vector has room for them, and a slot is valid with any content, also with none.
    unsafe { slots.set_len(capacity) };
    slots.into_boxed_slice()
}

/// Makes slots one by one, because loom watches each.
#[cfg(ganger_loom)]
fn allocate<T>(capacity: usize) -> Box<[Slot<T>]> {
    let slot = || UnsafeCell::new(MaybeUninit::uninit());
    std::iter::repeat_with(slot).take(capacity).collect()
}

/// Copies `count` neighbouring slots.
///
/// # Safety
/// Both sides have `count` slots. No thread writes the slots at `from`, and no other thread reads
/// or writes the slots at `to`.
#[cfg(not(ganger_loom))]
unsafe fn copy_run<T>(from: NonNull<Slot<T>>, to: NonNull<Slot<T>>, count: u32) {
    // SAFETY: by the contract of this function. A slot is laid out like its content.
    unsafe { from.copy_to_nonoverlapping(to, count as usize) };
}

/// Copies `count` neighbouring slots one by one, so that loom sees each access.
///
/// # Safety
/// Both sides have `count` slots. No thread writes the slots at `from`, and no other thread reads
/// or writes the slots at `to`.
#[cfg(ganger_loom)]
unsafe fn copy_run<T>(from: NonNull<Slot<T>>, to: NonNull<Slot<T>>, count: u32) {
    for offset in 0..count as usize {
        // SAFETY: by the contract of this function.
        let (from, to) = unsafe { (from.add(offset).as_ref(), to.add(offset).as_ref()) };
        // SAFETY: by the contract of this function.
        let item = from.with(|slot| unsafe { slot.read() });
        // SAFETY: by the contract of this function.
        to.with_mut(|slot| unsafe { *slot = item });
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_capacity_is_rounded_up_to_a_power_of_two() {
        for (asked, got) in [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (1_000, 1_024)] {
            assert_eq!(Ring::<u8>::new(asked).capacity(), got);
        }
    }

    #[test]
    #[should_panic(expected = "capacity overflow")]
    fn too_large_a_ring_is_refused() {
        let _ring = Ring::<()>::new(MAX_CAPACITY + 1);
    }

    #[test]
    fn a_copy_keeps_indices_across_the_wrap() {
        let (small, large) = (Ring::new(4), Ring::new(8));
        let first = u32::MAX - 1;
        for offset in 0..4 {
            // SAFETY: one thread, and the slot is still empty.
            unsafe { small.write(first.wrapping_add(offset), MaybeUninit::new(offset)) };
        }
        // SAFETY: one thread.
        unsafe { small.copy_to(first, 4, *large, first) };
        for offset in 0..4 {
            // SAFETY: one thread, and the copy has filled the slot.
            let item = unsafe { large.read(first.wrapping_add(offset)).assume_init() };
            assert_eq!(item, offset);
        }
    }
}
