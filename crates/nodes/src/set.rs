//! Sets of free blocks: which of 64 neighbours one owner has.
//!
//! A [`BlockSet`] is a value that goes from function to function; a [`FreeSet`] is the same in a
//! place of its own, which one thread takes from and adds to.

use crate::slab::{SLAB, Size, Slab};
use std::cell::Cell;
use std::mem;
use std::ptr::{self, NonNull};

/// Blocks in a group: as many as a word has bits.
pub(crate) const GROUP: usize = u64::BITS as usize;

/// Blocks of one group. The owner of the set owns them.
#[derive(Clone, Copy)]
pub(crate) struct BlockSet {
    /// The group's first place, whether or not a block is there; null if the set is empty.
    pub(crate) first: *mut u8,
    /// Bit `n` stands for the block `n` places on.
    pub(crate) bits: u64,
}

impl BlockSet {
    pub(crate) const EMPTY: Self = Self {
        first: ptr::null_mut(),
        bits: 0,
    };

    /// The set of one block of that size.
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

    /// The place behind that of the block at an address, where there may be no block. Without a
    /// bit if the group ends there.
    #[inline]
    pub(crate) fn behind(block: NonNull<u8>, size: Size) -> Self {
        let Self { first, bits } = Self::of(block, size);
        let bits = bits << 1;
        Self { first, bits }
    }

    /// Adds blocks; `blocks` is not empty. If the set has blocks of another group, these come back,
    /// and the set begins anew.
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

    /// Gives the blocks back to their slab, and returns the slab if it is complete then: the caller
    /// has it to itself. An empty set gives nothing back.
    ///
    /// # Safety
    /// The blocks are of that size, and the caller owns them.
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

/// A set of free blocks in a place of its own.
///
/// It is two cells in place of one, because a processor that has just written a part of a cell
/// waits before it can read all of it.
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

    /// Takes the lowest block, which the caller owns from here on. `None` if the set is empty.
    /// O(1).
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

    /// Adds blocks if they are of the group that this set has, or had before it was emptied. Says
    /// whether they are.
    #[inline]
    pub(crate) fn add(&self, blocks: BlockSet) -> bool {
        let is_same_group = self.first.get() == blocks.first;
        if is_same_group {
            self.bits.set(self.bits.get() | blocks.bits);
        }
        is_same_group
    }

    /// Whether the set has, or had before it was emptied, blocks of the group of `other`.
    #[inline]
    pub(crate) fn is_of(&self, other: BlockSet) -> bool {
        self.first.get().addr() == other.first.addr()
    }

    /// Takes the one block of `wanted`, which is of the same group, if it is here.
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

    /// Whether the lowest block is the one of `wanted`.
    #[inline]
    pub(crate) fn begins_with(&self, wanted: BlockSet) -> bool {
        let bits = self.bits.get();
        self.is_of(wanted) && bits != 0 && bits & bits.wrapping_neg() == wanted.bits
    }

    /// Takes the blocks that lie behind the lowest one without a gap: with that one, which stays,
    /// they are at most so many.
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

    /// The group of the set, without its blocks.
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

    /// How many blocks there are.
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

    /// Sets with many gaps, with few, and with one row of blocks.
    fn bits() -> impl Strategy<Value = u64> {
        let row = (0..64_u32, 0..64_u32).prop_map(|(from, to)| u64::MAX >> from & u64::MAX << to);
        prop_oneof![
            any::<u64>(),
            any::<[u64; 3]>().prop_map(|[a, b, c]| a | b | c),
            row,
        ]
    }

    proptest! {
        /// The run ends at the first gap, at its bound, or with the group.
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
