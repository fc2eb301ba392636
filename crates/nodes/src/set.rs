//! Sets of free blocks among 64 neighbours.
//!
//! A [`BlockSet`] is a value passed between functions; a [`FreeSet`] is a set that stays in place,
//! where one thread takes from it and adds to it.

use crate::slab::{SLAB, Size, Slab};
use std::cell::Cell;
use std::mem;
use std::ptr::{self, NonNull};

/// Blocks in a group: as many as a word has bits.
pub(crate) const GROUP: usize = u64::BITS as usize;

/// Blocks of one group. The owner of the set owns them.
#[derive(Clone, Copy)]
pub(crate) struct BlockSet {
    /// The group's first place, with or without a block in the set; null if the set is empty.
    pub(crate) first: *mut u8,
    /// Bit `n` stands for the block `n` places on.
    pub(crate) bits: u64,
}

impl BlockSet {
    pub(crate) const EMPTY: Self = Self {
        first: ptr::null_mut(),
        bits: 0,
    };

    /// Returns the set of a single block of size `size`.
    #[inline]
    pub(crate) fn of(block: NonNull<u8>, size: Size) -> Self {
        let address = block.as_ptr().addr();
        let slab = address & !(SLAB - 1);
        let place = (address - slab) / size.bytes();
        let first = slab + place / GROUP * (GROUP * size.bytes());
        Self {
            first: block.as_ptr().with_addr(first),
            bits: 1 << (place % GROUP),
        }
    }

    /// Returns the place behind the block at an address; a block may or may not lie there. Without
    /// a bit if the group ends there.
    #[inline]
    pub(crate) fn behind(block: NonNull<u8>, size: Size) -> Self {
        let Self { first, bits } = Self::of(block, size);
        let bits = bits << 1;
        Self { first, bits }
    }

    /// Adds blocks; `blocks` is not empty. If the set has blocks of another group, it returns them
    /// and begins anew.
    #[inline]
    pub(crate) fn add(&mut self, blocks: Self) -> Option<Self> {
        if self.first == blocks.first {
            self.bits |= blocks.bits;
            return None;
        }
        let old = mem::replace(self, blocks);
        (!old.is_empty()).then_some(old)
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Gives the blocks back to their slab, and returns the slab if it is now complete: it belongs
    /// to the caller alone. An empty set gives nothing back.
    ///
    /// # Safety
    /// The blocks are of size `size`, and the caller owns them.
    pub(crate) unsafe fn give_back(self, size: Size) -> Option<NonNull<Slab>> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: not null, because the set is not empty.
        let slab = Slab::of(unsafe { NonNull::new_unchecked(self.first) });
        // SAFETY: by the contract of this function.
        unsafe { Slab::give_back(slab, self.bits.count_ones() as usize, size) }.then_some(slab)
    }
}

/// A set of free blocks that stays in place.
///
/// The set has two cells instead of one, because a processor that has just written a part of a cell
/// waits before it can read the whole cell.
pub(crate) struct FreeSet {
    first: Cell<*mut u8>,
    bits: Cell<u64>,
}

impl FreeSet {
    pub(crate) const fn new() -> Self {
        Self {
            first: Cell::new(ptr::null_mut()),
            bits: Cell::new(0),
        }
    }

    /// Takes the lowest block, which the caller now owns. `None` if the set is empty. O(1).
    #[inline]
    pub(crate) fn take(&self, size: Size) -> Option<NonNull<u8>> {
        let bits = self.bits.get();
        if bits == 0 {
            return None;
        }
        self.bits.set(bits & (bits - 1));
        let bytes = bits.trailing_zeros() as usize * size.bytes();
        // SAFETY: a place in the slab, because the set is not empty.
        Some(unsafe { NonNull::new_unchecked(self.first.get().add(bytes)) })
    }

    /// Adds blocks of the set's group, which an emptied set keeps. Returns whether they are of this
    /// group.
    #[inline]
    pub(crate) fn add(&self, blocks: BlockSet) -> bool {
        let is_same_group = self.first.get() == blocks.first;
        if is_same_group {
            self.bits.set(self.bits.get() | blocks.bits);
        }
        is_same_group
    }

    /// Returns whether the set is of the group of `other`; an emptied set keeps its group.
    #[inline]
    pub(crate) fn is_of(&self, other: BlockSet) -> bool {
        self.first.get().addr() == other.first.addr()
    }

    /// Takes the block in `wanted`, which is of the same group, if the set has it.
    #[inline]
    pub(crate) fn take_block(&self, wanted: BlockSet, size: Size) -> Option<NonNull<u8>> {
        let found = self.bits.get() & wanted.bits;
        if found == 0 {
            return None;
        }
        self.bits.set(self.bits.get() & !found);
        let bytes = found.trailing_zeros() as usize * size.bytes();
        // SAFETY: a place in the slab, because the set is not empty.
        Some(unsafe { NonNull::new_unchecked(self.first.get().add(bytes)) })
    }

    /// Returns whether the lowest block is the block in `wanted`.
    #[inline]
    pub(crate) fn begins_with(&self, wanted: BlockSet) -> bool {
        let bits = self.bits.get();
        self.is_of(wanted) && bits != 0 && bits & bits.wrapping_neg() == wanted.bits
    }

    /// Takes the blocks that follow the lowest block without a gap. Together with the lowest block,
    /// which stays, they are at most `blocks`.
    pub(crate) fn take_run(&self, blocks: u32) -> BlockSet {
        let bits = self.bits.get();
        let lowest = bits.trailing_zeros() % u64::BITS;
        let length = (bits >> lowest).trailing_ones().min(blocks);
        let behind = ((1_u64 << length) - 1) << lowest & bits & bits.wrapping_sub(1);
        self.bits.set(bits & !behind);
        BlockSet {
            first: self.first.get(),
            bits: behind,
        }
    }

    /// Returns the group of the set, without its blocks.
    pub(crate) fn group(&self) -> BlockSet {
        BlockSet {
            first: self.first.get(),
            bits: 0,
        }
    }

    pub(crate) fn replace(&self, set: BlockSet) -> BlockSet {
        BlockSet {
            first: self.first.replace(set.first),
            bits: self.bits.replace(set.bits),
        }
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.bits.get().count_ones() as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bits.get() == 0
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sets with many gaps, with few, and with a single row of blocks.
    fn bits() -> impl Strategy<Value = u64> {
        let row = (0..64_u32, 0..64_u32).prop_map(|(from, to)| u64::MAX >> from & u64::MAX << to);
        prop_oneof![
            any::<u64>(),
            any::<[u64; 3]>().prop_map(|[a, b, c]| a | b | c),
            row,
        ]
    }

    proptest! {
        /// Checks that the run ends at the first gap, at its bound, or with the group.
        #[test]
        fn a_run_is_what_lies_behind_the_lowest_block(bits in bits(), blocks in 1..20_u32) {
            let set = FreeSet::new();
            let first = ptr::without_provenance_mut(SLAB);
            set.replace(BlockSet { first, bits });
            let is_here = |place: &u32| bits >> place & 1 == 1;
            let lowest = (0..u64::BITS).find(is_here).unwrap_or(u64::BITS);
            let expected = (lowest + 1..u64::BITS.min(lowest + blocks))
                .take_while(is_here)
                .fold(0, |run, place| run | 1 << place);
            let run = set.take_run(blocks);
            let left = set.replace(BlockSet::EMPTY);
            prop_assert_eq!((run.first, left.first), (first, first));
            prop_assert_eq!((run.bits, left.bits), (expected, bits & !expected));
        }
    }
}
