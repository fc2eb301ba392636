//! The ring of slots that the indices of the deque wrap around in.
//!
//! A ring knows nothing of which slots hold items: `bottom`, the word and `released` say that, and
//! the callers' safety contracts refer to them. It never drops an item.

use ganger_sync::cell::UnsafeCell;
use std::mem::MaybeUninit;

/// The most slots a ring can have: differences of two indices must fit an `i32`.
pub(crate) const MAX_CAPACITY: u32 = 1 << 30;

/// A power of two of slots.
///
/// | who | does what with a slot |
/// |---|---|
/// | owner | writes one that holds nothing; reads one that is its own |
/// | thief | reads one that it has claimed |
pub(crate) struct Ring<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
}

impl<T> Ring<T> {
    /// A ring with at least `capacity` slots.
    ///
    /// # Panics
    /// With "capacity overflow" when that is more than [`MAX_CAPACITY`] or than fits the address
    /// space.
    pub(crate) fn new(capacity: u32) -> Self {
        assert!(capacity <= MAX_CAPACITY, "capacity overflow");
        Self {
            slots: (0..capacity.next_power_of_two())
                .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
                .collect(),
        }
    }

    /// The number of slots.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most MAX_CAPACITY, by construction"
    )]
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Puts an item into the slot of `index`, without dropping what the slot held.
    ///
    /// # Safety
    /// Nobody reads or writes this slot at the same time.
    #[inline]
    pub(crate) unsafe fn write(&self, index: u32, item: MaybeUninit<T>) {
        // SAFETY: by the contract of this function the access is exclusive.
        self.slot(index).with_mut(|slot| unsafe { *slot = item });
    }

    /// Copies the slot of `index`. The copy is an item if the slot holds one; whoever makes it one
    /// must be the only one who does so.
    ///
    /// # Safety
    /// Nobody writes this slot at the same time.
    #[inline]
    pub(crate) unsafe fn read(&self, index: u32) -> MaybeUninit<T> {
        // SAFETY: by the contract of this function nobody writes; the copy is not yet an item, so
        // a second copy elsewhere does no harm.
        self.slot(index).with(|slot| unsafe { slot.read() })
    }

    /// Copies the slots of `count` indices from `first` on to the slots of the indices from `to` on
    /// in `target`.
    ///
    /// # Safety
    /// Nobody writes those slots here, and nobody reads or writes those in `target`, at the same
    /// time.
    pub(crate) unsafe fn copy_to(&self, first: u32, count: u32, target: &Self, to: u32) {
        debug_assert!(count <= self.capacity() && count <= target.capacity());
        for offset in 0..count {
            // SAFETY: by the contract of this function.
            let item = unsafe { self.read(first.wrapping_add(offset)) };
            // SAFETY: by the contract of this function.
            unsafe { target.write(to.wrapping_add(offset), item) };
        }
    }

    #[inline]
    fn slot(&self, index: u32) -> &UnsafeCell<MaybeUninit<T>> {
        let slot = index as usize & (self.slots.len() - 1);
        // SAFETY: the length is a power of two, so the mask keeps `slot` below it.
        unsafe { self.slots.get_unchecked(slot) }
    }
}

#[cfg(all(test, not(loom)))]
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
            // SAFETY: one thread, and nothing is in the slot yet.
            unsafe { small.write(first.wrapping_add(offset), MaybeUninit::new(offset)) };
        }
        // SAFETY: one thread.
        unsafe { small.copy_to(first, 4, &large, first) };
        for offset in 0..4 {
            // SAFETY: one thread, and the slot was filled above.
            let item = unsafe { large.read(first.wrapping_add(offset)).assume_init() };
            assert_eq!(item, offset);
        }
    }
}
