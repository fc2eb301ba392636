//! Neighbouring blocks for each list, when a thread adds to many lists in turn.
//!
//! **Problem.** Blocks taken one after the other are neighbours. A thread that sends to a thousand
//! queues in turn leaves the nodes of each queue a thousand blocks apart. A consumer that is behind
//! then waits for memory at each node, and gives each node back to a different slab.
//!
//! **Rejected.** A table by list of its blocks set aside: it needs rules for when a list gets
//! blocks, and when it loses them. Blocks in each queue: a million mailboxes would each keep some.
//! Prefetching nodes during the walk: it saves neither pages nor atomic operations.
//!
//! **Protocol.** The address of a list's newest block tells where the next block belongs: behind
//! it. For each group opened lately by the thread, a table keeps the blocks set aside.
//! 1. *In turn*: the thread looks at the newest block only when it adds to another list than the
//!    last time. Otherwise the list's blocks are neighbours anyway.
//! 2. If the group of the newest block is in the table, and the block behind it is set aside, the
//!    list gets this block.
//! 3. If the group is in the table, but the block behind is not set aside, a *run* begins: the list
//!    gets the lowest block of the open set, and the blocks behind this one are set aside.
//! 4. Otherwise another thread has made the newest block, or it is old, and a run would be broken
//!    soon. The list gets the lowest block of the open set.
//! 5. A group that takes the place of another group in the table displaces its blocks, which go
//!    back to their slab.
//!
//! An empty list has no newest block, so a queue whose consumer keeps up never has a run.
//!
//! **Proof sketch.** The newest block may be gone, so only its address counts: the thread reads
//! nothing from it. Blocks set aside are the thread's own, taken out of the open set. They leave
//! the table once: to a list, or to their slab.
//!
//! **Price.** A table for each size that has had a run, and the blocks in it: at most the blocks of
//! [`GROUPS`] slabs, until [`Runs::end`].

use crate::set::{BlockSet, FreeSet};
use crate::slab::{SLAB, Size};
use ganger_sync::hint;
use std::cell::Cell;
use std::iter;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Blocks in a run.
const RUN: u32 = 8;

/// Groups in the table. The address of a group decides its place.
pub(crate) const GROUPS: usize = 512;

/// A thread's runs of one size. Only this thread uses them.
pub(crate) struct Runs {
    /// The list of the last block.
    last: Cell<usize>,
    /// `None` until the first call of [`take_behind`](Self::take_behind). Never dropped, because
    /// the thread cache has no destructor: [`end`](Self::end) frees it.
    groups: ManuallyDrop<Cell<Option<Box<[FreeSet]>>>>,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self {
            last: Cell::new(0),
            groups: ManuallyDrop::new(Cell::new(None)),
        }
    }

    /// Returns whether the list differs from the list of the last call.
    #[inline]
    pub(crate) fn is_in_turn(&self, list: usize) -> bool {
        self.last.replace(list) != list
    }

    /// Takes the block behind the newest block of a list; the caller now owns it. If that block is
    /// not set aside, the caller gives up the returned blocks, and then takes the lowest block of
    /// `open`, the open set. O(1), except for the first table.
    pub(crate) fn take_behind(
        &self,
        newest: NonNull<u8>,
        open: &FreeSet,
        size: Size,
    ) -> Result<NonNull<u8>, BlockSet> {
        let Some(groups) = self.groups.take() else {
            self.make_table();
            return Err(BlockSet::EMPTY);
        };
        let behind = BlockSet::behind(newest, size);
        let group = &groups[place_of(behind)];
        let taken = if !group.is_of(behind) {
            Err(BlockSet::EMPTY)
        } else if let Some(block) = group.take_block(behind, size) {
            // The next round writes the list's next block.
            hint::prefetch_for_write(block.as_ptr().wrapping_add(size.bytes()));
            Ok(block)
        } else if open.begins_with(behind) {
            Err(BlockSet::EMPTY)
        } else {
            Err(set_aside(&groups, open.take_run(RUN)))
        };
        self.groups.set(Some(groups));
        taken
    }

    #[cold]
    fn make_table(&self) {
        let new = iter::repeat_with(FreeSet::new).take(GROUPS).collect();
        // The allocator is foreign code, and may have made a table meanwhile.
        let groups = self.groups.take().unwrap_or(new);
        self.groups.set(Some(groups));
    }

    /// Notes a group that the thread has just opened. Returns the blocks of the displaced group,
    /// which the caller gives up. O(1).
    pub(crate) fn note(&self, group: BlockSet) -> BlockSet {
        let Some(groups) = self.groups.take() else {
            return BlockSet::EMPTY;
        };
        let displaced = set_aside(&groups, BlockSet { bits: 0, ..group });
        self.groups.set(Some(groups));
        displaced
    }

    /// Frees the table, and returns all blocks set aside.
    pub(crate) fn end(&self) -> impl Iterator<Item = BlockSet> + use<> {
        let groups = self.groups.take().into_iter().flatten();
        groups.map(|group| group.replace(BlockSet::EMPTY))
    }
}

/// Adds blocks to their group's blocks in the table. Returns the blocks of the displaced group.
fn set_aside(groups: &[FreeSet], blocks: BlockSet) -> BlockSet {
    let group = &groups[place_of(blocks)];
    let before = group.replace(blocks);
    if before.first.addr() != blocks.first.addr() {
        return before;
    }
    let bits = before.bits | blocks.bits;
    group.replace(BlockSet { bits, ..blocks });
    BlockSet::EMPTY
}

/// Returns the place of the set's group in the table: neighbouring groups have different places.
fn place_of(set: BlockSet) -> usize {
    /// Groups in a slab of the smallest blocks.
    const PARTS: usize = 4;
    let address = set.first.addr();
    let part = address % SLAB / (SLAB / PARTS);
    (address / SLAB + part * (GROUPS / PARTS)) % GROUPS
}
