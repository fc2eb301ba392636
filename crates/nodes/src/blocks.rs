//! A thread's blocks of one size: see [`cache`](crate::cache).

use crate::runs::Runs;
use crate::set::{BlockSet, FreeSet, GROUP};
use crate::slab::{SLAB, Size, Slab};
use std::cell::Cell;
use std::ptr::{self, NonNull};

/// How many sets of given blocks a thread keeps. With more sets, a thread gives back less often
/// when the nodes of several producers come mixed.
const SETS: usize = 8;

/// A thread takes from a given set only if the set has at least this many blocks, or half a slab's
/// blocks if fewer. A smaller set would soon be empty again.
const WORTH: usize = 16;

/// A thread's blocks of one size. Only this thread uses them.
pub(crate) struct LocalBlocks {
    /// The set from which the thread takes.
    open: FreeSet,
    /// Blocks set aside for lists to which the thread adds in turn.
    runs: Runs,
    /// The first place of the groups that the thread has not opened, all of one slab, or null.
    rest: Cell<*mut u8>,
    /// The sets to which blocks are given. A set's slab decides its index.
    given: [FreeSet; SETS],
    /// A slab that belongs to this thread alone, or null.
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

    /// Takes a block, which the caller now owns. `None` if a [`refill`](Self::refill) is due. O(1).
    #[inline]
    pub(crate) fn take(&self, size: Size) -> Option<NonNull<u8>> {
        self.open.take(size)
    }

    /// Returns whether the list differs from the list of the last call, as it does when the thread
    /// adds to many lists in turn.
    #[inline]
    pub(crate) fn is_in_turn(&self, list: usize) -> bool {
        self.runs.is_in_turn(list)
    }

    /// Takes the block behind the newest block of a list; the caller now owns it. If that block is
    /// not set aside, the caller gives up the returned blocks and then takes a block for the list
    /// with [`take`](Self::take). O(1), except for a call of the allocator.
    pub(crate) fn take_behind(
        &self,
        newest: NonNull<u8>,
        size: Size,
    ) -> Result<NonNull<u8>, BlockSet> {
        self.runs.take_behind(newest, &self.open, size)
    }

    /// Notes the group of the open set, and returns the blocks that it displaces, which the caller
    /// gives up.
    pub(crate) fn note_open(&self) -> BlockSet {
        self.runs.note(self.open.group())
    }

    /// Gives up the blocks set aside for lists, and hands each slab completed by this to `keep`.
    pub(crate) fn end_runs(&self, size: Size, keep: fn(NonNull<Slab>)) {
        for set in self.runs.end() {
            // SAFETY: the blocks are this thread's.
            if let Some(slab) = unsafe { set.give_back(size) } {
                keep(slab);
            }
        }
    }

    /// Refills the open set if it is empty, and returns whether it has blocks now. If not, the
    /// caller must [`keep`](Self::keep) a slab first.
    pub(crate) fn refill(&self, size: Size) -> bool {
        !self.open.is_empty() || self.reuse(size) || self.go_on(size) || self.open_spare(size)
    }

    /// Takes back the caller's blocks if their group already has its set here, and returns whether
    /// it has. If not, [`begin`](Self::begin) makes the set. O(1).
    #[inline]
    pub(crate) fn give(&self, set: BlockSet) -> bool {
        self.given_for(set).add(set)
    }

    /// Takes back the caller's blocks, and returns the blocks that they displace, which the caller
    /// gives up.
    pub(crate) fn begin(&self, set: BlockSet) -> BlockSet {
        self.given_for(set).replace(set)
    }

    fn given_for(&self, set: BlockSet) -> &FreeSet {
        &self.given[set.first.addr() / SLAB % SETS]
    }

    /// Keeps a slab that belongs to this thread alone. Fails if the thread keeps such a slab
    /// already.
    pub(crate) fn keep(&self, slab: NonNull<Slab>) -> Result<(), NonNull<Slab>> {
        if !self.spare.get().is_null() {
            return Err(slab);
        }
        self.spare.set(slab.as_ptr());
        Ok(())
    }

    /// Opens a given set, if one is large enough.
    fn reuse(&self, size: Size) -> bool {
        let least = WORTH.min(size.blocks() / 2);
        let Some(set) = self.given.iter().find(|set| set.len() >= least) else {
            return false;
        };
        self.open.replace(set.replace(BlockSet::EMPTY));
        true
    }

    /// Opens the next group of the slab, if it has a further group.
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
            // The slab's count takes its first place.
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

    /// Returns the slab with groups that the thread has not opened, and the place of the first such
    /// group.
    fn rest(&self, size: Size) -> Option<(NonNull<Slab>, usize)> {
        let first = NonNull::new(self.rest.get())?;
        let slab = Slab::of(first);
        let place = (first.addr().get() - slab.addr().get()) / size.bytes();
        Some((slab, place))
    }

    /// Opens the spare slab, if the thread has one. All groups of the previous slab have been
    /// opened.
    fn open_spare(&self, size: Size) -> bool {
        let Some(slab) = NonNull::new(self.spare.replace(ptr::null_mut())) else {
            return false;
        };
        // SAFETY: the slab belongs to this thread alone.
        unsafe { Slab::open(slab) };
        self.rest.set(slab.as_ptr().cast());
        self.go_on(size)
    }

    /// Gives up everything, and hands each slab completed by this to `keep`.
    pub(crate) fn release(&self, size: Size, keep: fn(NonNull<Slab>)) {
        self.end_runs(size, keep);
        let rest = self.rest(size);
        self.rest.set(ptr::null_mut());
        if let Some((slab, place)) = rest {
            // SAFETY: no thread has taken these blocks, so they are this thread's.
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
