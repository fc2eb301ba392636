//! An allocator that counts: what each thread asks for, and how many blocks of the node cache's
//! sizes there are.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one thread asked the allocator for, and gave back to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) allocated: usize,
    pub(crate) freed: usize,
    /// By how much it holds more.
    pub(crate) bytes: isize,
}

impl Tally {
    pub(crate) const NOTHING: Self = Self {
        allocated: 0,
        freed: 0,
        bytes: 0,
    };
}

thread_local! {
    /// Without a destructor, so that it is there as long as the thread is.
    static MINE: Cell<Tally> = const { Cell::new(Tally::NOTHING) };
}

/// How many sizes the cache has: 16, 32 and so on up to 256 bytes.
const SIZES: usize = 16;

/// How many blocks of each size are allocated. Only they are aligned to 16 bytes and of such a size.
static BLOCKS: [AtomicUsize; SIZES] = [const { AtomicUsize::new(0) }; SIZES];

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is left to the system's allocator; the counters change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut mine = MINE.get();
        mine.allocated += 1;
        mine.bytes += layout.size().cast_signed();
        MINE.set(mine);
        if let Some(blocks) = blocks_like(layout) {
            // Ordering: Relaxed, here and below: a sum.
            blocks.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut mine = MINE.get();
        mine.freed += 1;
        mine.bytes -= layout.size().cast_signed();
        MINE.set(mine);
        if let Some(blocks) = blocks_like(layout) {
            blocks.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn blocks_like(layout: Layout) -> Option<&'static AtomicUsize> {
    let is_block = layout.align() == 16 && layout.size().is_multiple_of(16);
    is_block.then(|| BLOCKS.get((layout.size() / 16).checked_sub(1)?))?
}

/// Runs `body`, and says what the calling thread asked the allocator for meanwhile.
pub(crate) fn count<R>(body: impl FnOnce() -> R) -> (R, Tally) {
    let before = MINE.get();
    let result = body();
    let after = MINE.get();
    let tally = Tally {
        allocated: after.allocated - before.allocated,
        freed: after.freed - before.freed,
        bytes: after.bytes - before.bytes,
    };
    (result, tally)
}

/// How many blocks of `bytes` there are, in use or kept.
pub(crate) fn blocks(bytes: usize) -> usize {
    BLOCKS[bytes / 16 - 1].load(Ordering::Relaxed)
}

/// How many blocks of any size there are, in use or kept.
pub(crate) fn all_blocks() -> usize {
    (1..=SIZES).map(|size| blocks(16 * size)).sum()
}
