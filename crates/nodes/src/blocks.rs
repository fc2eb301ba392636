//! The blocks of one size that one thread keeps: see [`cache`](crate::cache).

use crate::runs::Runs;
use crate::set::{BlockSet, FreeSet, GROUP};
use crate::slab::{SLAB, Size, Slab};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// How many sets of blocks that were given a thread keeps. With more of them, a thread gives back
/// less often when the nodes of several producers come mixed.
const SETS: usize = 8;

/// The least number of blocks for which a thread takes from a set that it was given. A smaller set
/// would soon be empty again. Half a slab's blocks, where that is less, are enough.
const WORTH: usize = 16;

/// One thread's blocks of one size. Only this thread uses it.
pub(crate) struct LocalBlocks {
    /// The set that blocks are taken from.
    open: FreeSet,
    /// What is set aside for lists that the thread adds to in turn.
    runs: Runs,
    /// The first place of the groups that have not been taken from, of one slab, or null.
    rest: Cell<*mut u8>,
    /// The sets that blocks are given to. The slab of a set decides which one it goes to.
    given: [FreeSet; SETS],
    /// A slab that this thread has to itself, or null.
    spare: Cell<*mut Slab>,
}

impl LocalBlocks {
    pub(crate) const fn new() -> Self {
        Self {
            open: FreeSet::new(),
            runs: Runs::new(),
            rest: Cell::new(ptr::null_mut()),
            given: [const { FreeSet::new() }; SETS],
            spare: Cell::new(ptr::null_mut()),
        }
    }

    /// Takes a block, which the caller owns from here on. `None` if a [`refill`](Self::refill) is
    /// due. O(1).
    #[inline]
    pub(crate) fn take(&self, size: Size) -> Option<NonNull<u8>> {
        self.open.take(size)
    }

    /// Whether the thread adds to many lists in turn: the list is another one than that of the last
    /// call.
    #[inline]
    pub(crate) fn is_in_turn(&self, list: usize) -> bool {
        self.runs.is_in_turn(list)
    }

    /// Takes the block behind the newest of a list, which the caller owns from here on. If there is
    /// none to take, the list gets a block as any other does, after the caller has given up the
    /// blocks that are returned. O(1), but for a call of the allocator.
    pub(crate) fn take_behind(
        &self,
        newest: NonNull<u8>,
        size: Size,
    ) -> Result<NonNull<u8>, BlockSet> {
        self.runs.take_behind(newest, &self.open, size)
    }

    /// Notes the group of the set that blocks are taken from, and gives up the blocks whose place
    /// it takes.
    pub(crate) fn note_open(&self) -> BlockSet {
        self.runs.note(self.open.group())
    }

    /// Gives up the blocks that are set aside for lists, and hands the slabs that are complete then
    /// to `keep`.
    pub(crate) fn end_runs(&self, size: Size, keep: fn(NonNull<Slab>)) {
        for set in self.runs.end() {
            // SAFETY: the blocks are this thread's.
            if let Some(slab) = unsafe { set.give_back(size) } {
                keep(slab);
            }
        }
    }

    /// Sees to it that there are blocks to take, and says whether there are. If there are none, a
    /// slab to [`keep`](Self::keep) is needed.
    pub(crate) fn refill(&self, size: Size) -> bool {
        !self.open.is_empty() || self.reuse(size) || self.go_on(size) || self.open_spare(size)
    }

    /// Takes the caller's blocks back if their group has its place here already, and says whether
    /// it has. If not, [`begin`](Self::begin) makes a place. O(1).
    #[inline]
    pub(crate) fn give(&self, set: BlockSet) -> bool {
        self.given_for(set).add(set)
    }

    /// Takes the caller's blocks back, and gives up the blocks whose place they take.
    pub(crate) fn begin(&self, set: BlockSet) -> BlockSet {
        self.given_for(set).replace(set)
    }

    fn given_for(&self, set: BlockSet) -> &FreeSet {
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

    /// Opens a set that was given, if one is large enough.
    fn reuse(&self, size: Size) -> bool {
        let least = WORTH.min(size.blocks() / 2);
        let Some(set) = self.given.iter().find(|set| set.len() >= least) else {
            return false;
        };
        self.open.replace(set.replace(BlockSet::EMPTY));
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
        self.open.replace(BlockSet {
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

    /// The slab whose groups have not all been taken from, and the place of the first such group.
    fn rest(&self, size: Size) -> Option<(NonNull<Slab>, usize)> {
        let first = NonNull::new(self.rest.get())?;
        let slab = Slab::of(first);
        let place = (first.addr().get() - slab.addr().get()) / size.bytes();
        Some((slab, place))
    }

    /// Opens the spare slab, if there is one. Nothing is left of the slab before it.
    fn open_spare(&self, size: Size) -> bool {
        let Some(slab) = NonNull::new(self.spare.replace(ptr::null_mut())) else {
            return false;
        };
        // SAFETY: this thread has it to itself.
        unsafe { Slab::open(slab) };
        self.rest.set(slab.as_ptr().cast());
        self.go_on(size)
    }

    /// Gives up everything, and hands the slabs that are complete then to `keep`.
    pub(crate) fn release(&self, size: Size, keep: fn(NonNull<Slab>)) {
        self.end_runs(size, keep);
        let rest = self.rest(size);
        self.rest.set(ptr::null_mut());
        if let Some((slab, place)) = rest {
            // SAFETY: nothing has taken these blocks, so they are this thread's.
            if unsafe { Slab::give_back(slab, size.places() - place, size) } {
                keep(slab);
            }
        }
        for set in self.given.iter().chain([&self.open]) {
            // SAFETY: the blocks are this thread's.
            if let Some(slab) = unsafe { set.replace(BlockSet::EMPTY).give_back(size) } {
                keep(slab);
            }
        }
        if let Some(slab) = NonNull::new(self.spare.replace(ptr::null_mut())) {
            keep(slab);
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests;
