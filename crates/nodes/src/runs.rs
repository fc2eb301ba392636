//! Blocks of one list side by side, where a thread adds to many lists in turn.
//!
//! **Problem.** Blocks that a thread takes one after the other are neighbours. A thread that sends
//! to a thousand queues in turn leaves the nodes of each queue a thousand blocks apart. A consumer
//! that is behind then waits for memory at each node, and gives each one back to a slab of its own.
//!
//! **Rejected.** A table by list, of the blocks set aside for each: it needs rules for when a list
//! gets blocks, and when it loses them. Blocks in each queue: a million mailboxes would each keep
//! theirs. Fetching nodes ahead of the walk: it saves neither the pages nor the atomic operations.
//!
//! **Protocol.** The address of a list's newest block says where the next one belongs: behind it.
//! For each group that the thread has opened lately, a table keeps the blocks that are set aside.
//! 1. *In turn*: the thread looks at the newest block only when it adds to another list than the
//!    last time. Blocks of one list are neighbours anyway.
//! 2. If the newest block is of a group in the table, and the block behind it is set aside, the
//!    list gets that block.
//! 3. If it is of such a group, and the block behind it is not set aside, a *run* begins: the list
//!    gets the lowest block of the open set, and the blocks behind that one are set aside.
//! 4. Otherwise another thread has made the newest block, or it is old, and a run would be broken
//!    soon. The list gets the lowest block of the open set.
//! 5. A group that takes the place of another in the table displaces the blocks of that one, which
//!    go back to their slab.
//!
//! A list that is empty has no newest block, so a queue whose consumer keeps up never has a run.
//!
//! **Proof sketch.** The newest block may be gone, so only its address counts: the thread reads
//! nothing there. What is set aside is the thread's own, taken out of the open set, and leaves the
//! table once: to a list, or to its slab.
//!
//! **Price.** A table for each size that has had a run, and the blocks in it: at most as many as
//! [`GROUPS`] slabs have, until [`Runs::end`].

use crate::set::{BlockSet, FreeSet};
use crate::slab::{SLAB, Size};
use ganger_sync::hint;
use std::cell::Cell;
use std::iter;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Blocks in a run.
const RUN: u32 = 8;

/// Groups in the table. The address of a group decides which place it has.
pub(crate) const GROUPS: usize = 512;

/// One thread's runs of one size. Only this thread uses it.
pub(crate) struct Runs {
    /// The list that the last block was for.
    last: Cell<usize>,
    /// None before the first list that a block was to go behind. Never dropped, because the thread
    /// cache has no destructor: [`end`](Self::end) frees it.
    groups: ManuallyDrop<Cell<Option<Box<[FreeSet]>>>>,
}

impl Runs {
    pub(crate) const fn new() -> Self {
        Self {
            last: Cell::new(0),
            groups: ManuallyDrop::new(Cell::new(None)),
        }
    }

    /// Whether the list is another one than that of the last call.
    #[inline]
    pub(crate) fn is_in_turn(&self, list: usize) -> bool {
        self.last.replace(list) != list
    }

    /// Takes the block behind the newest of a list, which the caller owns from here on. If there is
    /// none to take, the list gets the lowest block of `open`, the set that blocks are taken from,
    /// after the caller has given up the blocks that are returned. O(1), but for the first table.
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
            // The list's next block is written next time round.
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
        // The allocator is foreign code, which may have made one meanwhile.
        let groups = self.groups.take().unwrap_or(new);
        self.groups.set(Some(groups));
    }

    /// Notes a group, which blocks are taken from from here on. Returns the blocks of the group
    /// that is displaced, which the caller gives up. O(1).
    pub(crate) fn note(&self, group: BlockSet) -> BlockSet {
        let Some(groups) = self.groups.take() else {
            return BlockSet::EMPTY;
        };
        let displaced = set_aside(&groups, BlockSet { bits: 0, ..group });
        self.groups.set(Some(groups));
        displaced
    }

    /// Gives up what is set aside, and the table.
    pub(crate) fn end(&self) -> impl Iterator<Item = BlockSet> + use<> {
        let groups = self.groups.take().into_iter().flatten();
        groups.map(|group| group.replace(BlockSet::EMPTY))
    }
}

/// Adds blocks to those of their group that are set aside. Returns the blocks of the group that is
/// displaced.
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

/// The place of the set's group in the table: neighbours have places of their own.
fn place_of(set: BlockSet) -> usize {
    /// The smallest blocks make that many groups a slab.
    const PARTS: usize = 4;
    let address = set.first.addr();
    let part = address % SLAB / (SLAB / PARTS);
    (address / SLAB + part * (GROUPS / PARTS)) % GROUPS
}
