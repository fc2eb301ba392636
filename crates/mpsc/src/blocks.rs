//! Sets of blocks, and those that one thread has of one size: see [`cache`](crate::cache).

use crate::slab::{SLAB, Size, Slab};
use std::cell::Cell;
use std::mem;
use std::ptr::{self, NonNull};

/// Blocks in a group: as many as a word has bits.
const GROUP: usize = u64::BITS as usize;

/// Sets of blocks that were given. With more of them, a thread gives back less often when the nodes
/// of several producers come mixed.
const SETS: usize = 8;

/// From how many blocks on a set that was given is worth being taken from; from half a slab's on, where
/// that is less. With a few blocks it would only be the next set soon.
const WORTH: usize = 16;

/// Blocks of one group, owned by whoever has the set.
#[derive(Clone, Copy)]
pub(crate) struct Set {
    /// The group's first place, whether or not there is a block; null if the set is empty.
    first: *mut u8,
    /// Bit `n` stands for the block `n` places on.
    bits: u64,
}

impl Set {
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

    /// Puts blocks in, of which there is at least one. If the set was another group's, it begins anew,
    /// and what was in it comes back.
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

    /// Gives the blocks, if there are any, back to their slab, and returns that if it is complete
    /// then: the caller has it to itself.
    ///
    /// # Safety
    /// They are of that size, and the caller's.
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

/// A set that stays where it is. In two cells, because a processor that has just written a part of a
/// cell has to wait before it can read all of it.
pub(crate) struct Place {
    first: Cell<*mut u8>,
    bits: Cell<u64>,
}

impl Place {
    pub(crate) const fn new() -> Self {
        Self {
            first: Cell::new(ptr::null_mut()),
            bits: Cell::new(0),
        }
    }

    /// The lowest block, which is the caller's from now on; none if the set is empty. O(1).
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

    pub(crate) fn replace(&self, set: Set) -> Set {
        Set {
            first: self.first.replace(set.first),
            bits: self.bits.replace(set.bits),
        }
    }
}

/// One thread's blocks of one size. The thread alone uses it.
pub(crate) struct Blocks {
    /// Taken from. Its first place stays when it is empty.
    open: Place,
    /// The first place of the groups that have not been taken from, of one slab, or null.
    rest: Cell<*mut u8>,
    /// Given to. Where a set is depends on its slab.
    given: [Place; SETS],
    /// A slab that this thread has to itself, or null.
    spare: Cell<*mut Slab>,
}

impl Blocks {
    pub(crate) const fn new() -> Self {
        Self {
            open: Place::new(),
            rest: Cell::new(ptr::null_mut()),
            given: [const { Place::new() }; SETS],
            spare: Cell::new(ptr::null_mut()),
        }
    }

    /// A block, which is the caller's from now on; none if a [`refill`](Self::refill) is due. O(1).
    #[inline]
    pub(crate) fn take(&self, size: Size) -> Option<NonNull<u8>> {
        self.open.take(size)
    }

    /// Sees to it that there are blocks to take; says whether there are. If not, a slab to
    /// [`keep`](Self::keep) would help.
    pub(crate) fn refill(&self, size: Size) -> bool {
        self.open.bits.get() != 0 || self.reuse(size) || self.go_on(size) || self.open_spare(size)
    }

    /// Takes blocks back, which are the caller's, if that is simple; says whether it is. If not, it is
    /// time to [`begin`](Self::begin) another set. O(1).
    #[inline]
    pub(crate) fn give(&self, set: Set) -> bool {
        let place = self.place_of(set);
        let is_there = place.first.get() == set.first;
        if is_there {
            place.bits.set(place.bits.get() | set.bits);
        }
        is_there
    }

    /// Takes blocks back, which are the caller's, and gives up those whose place they take.
    pub(crate) fn begin(&self, set: Set) -> Set {
        self.place_of(set).replace(set)
    }

    fn place_of(&self, set: Set) -> &Place {
        &self.given[set.first.addr() / SLAB % SETS]
    }

    /// Keeps a slab that this thread has to itself, unless it keeps one already.
    pub(crate) fn keep(&self, slab: NonNull<Slab>) -> Result<(), NonNull<Slab>> {
        if !self.spare.get().is_null() {
            return Err(slab);
        }
        self.spare.set(slab.as_ptr());
        Ok(())
    }

    /// Opens a set that was given, if there is one that is worth it.
    fn reuse(&self, size: Size) -> bool {
        let least = WORTH.min(size.blocks() / 2);
        let is_worth = |place: &&Place| place.bits.get().count_ones() as usize >= least;
        let Some(place) = self.given.iter().find(is_worth) else {
            return false;
        };
        self.open.replace(place.replace(Set::EMPTY));
        true
    }

    /// Opens the next group of the slab, if there is one.
    fn go_on(&self, size: Size) -> bool {
        let Some((slab, place)) = self.rest(size) else {
            return false;
        };
        let left = size.places() - place;
        let bits = if left < GROUP {
            (1 << left) - 1
        } else {
            u64::MAX
        };
        self.open.replace(Set {
            first: self.rest.get(),
            // The first place of all is the slab's own.
            bits: if place == 0 { bits & !1 } else { bits },
        });
        let next = if left > GROUP {
            // SAFETY: another place in the slab.
            unsafe {
                slab.as_ptr()
                    .cast::<u8>()
                    .add((place + GROUP) * size.bytes())
            }
        } else {
            ptr::null_mut()
        };
        self.rest.set(next);
        true
    }

    /// Where the groups begin that have not been taken from.
    fn rest(&self, size: Size) -> Option<(NonNull<Slab>, usize)> {
        let first = NonNull::new(self.rest.get())?;
        let slab = Slab::of(first);
        let place = (first.addr().get() - slab.addr().get()) / size.bytes();
        Some((slab, place))
    }

    /// Opens the spare slab, if there is one, when nothing is left of the one before.
    fn open_spare(&self, size: Size) -> bool {
        let Some(slab) = NonNull::new(self.spare.replace(ptr::null_mut())) else {
            return false;
        };
        // SAFETY: this thread has it to itself.
        unsafe { Slab::open(slab) };
        self.rest.set(slab.as_ptr().cast());
        self.go_on(size)
    }

    /// Gives everything up; slabs that are complete then, to `keep`.
    pub(crate) fn release(&self, size: Size, keep: fn(NonNull<Slab>)) {
        let rest = self.rest(size);
        self.rest.set(ptr::null_mut());
        if let Some((slab, place)) = rest {
            // SAFETY: nobody has taken them, so they were this thread's.
            if unsafe { Slab::give_back(slab, size.places() - place, size) } {
                keep(slab);
            }
        }
        for place in self.given.iter().chain([&self.open]) {
            // SAFETY: they were this thread's.
            if let Some(slab) = unsafe { place.replace(Set::EMPTY).give_back(size) } {
                keep(slab);
            }
        }
        if let Some(slab) = NonNull::new(self.spare.replace(ptr::null_mut())) {
            keep(slab);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
