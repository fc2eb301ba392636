//! An allocator that counts: what each thread asks for, and how many of the cache's slabs there
//! are.
#![allow(dead_code, reason = "each test program uses a part of it")]

use super::SLAB_BYTES;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What one thread asked the allocator for, and gave back to it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) allocated: usize,
    pub(crate) freed: usize,
    /// By how much what it holds has grown.
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
    /// Has no destructor, so that it is there as long as the thread is.
    static MINE: Cell<Tally> = const { Cell::new(Tally::NOTHING) };
}

/// How many slabs are allocated: nothing else is aligned to as much.
static SLABS: AtomicUsize = AtomicUsize::new(0);

/// What a thread that needs many slabs allocates and returns at once, so that the heap grows by
/// that much. Nothing else has this size. The calls are not counted. The bytes are, so that a test
/// sees when they do not come back.
const STRETCH: usize = 112 * 1_024;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does everything; the counters change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut mine = MINE.get();
        mine.allocated += usize::from(layout.size() != STRETCH);
        mine.bytes += layout.size().cast_signed();
        MINE.set(mine);
        if is_slab(layout) {
            // Ordering: Relaxed, because it is a sum.
            SLABS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut mine = MINE.get();
        mine.freed += usize::from(layout.size() != STRETCH);
        mine.bytes -= layout.size().cast_signed();
        MINE.set(mine);
        if is_slab(layout) {
            // Ordering: Relaxed, because it is a sum.
            SLABS.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn is_slab(layout: Layout) -> bool {
    layout.align() == SLAB_BYTES
}

/// Runs `body`, and says what the calling thread asked the allocator for in it.
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

/// How many slabs there are, in use or kept.
pub(crate) fn slabs() -> usize {
    // Ordering: Relaxed, because it is a sum.
    SLABS.load(Ordering::Relaxed)
}
