//! A counting allocator: counts each thread's calls, and all slabs of the cache.
#![allow(dead_code, reason = "each test program uses a part of it")]

use super::SLAB_BYTES;
use ganger_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// A thread's calls of the allocator.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) allocated: usize,
    pub(crate) freed: usize,
    /// Bytes allocated less bytes freed.
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
    /// Has no destructor, so it lives as long as the thread.
    static MINE: Cell<Tally> = const { Cell::new(Tally::NOTHING) };
}

/// How many slabs are allocated: only slabs are aligned to `SLAB_BYTES`.
static SLABS: AtomicUsize = AtomicUsize::new(0);

/// The size of the allocation with which `slab::stretch` makes the heap grow; nothing else has this
/// size. The counters ignore these calls. `bytes` includes them, so a test sees if they are not
/// returned.
const STRETCH: usize = 112 * 1_024;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system allocator does the work; the counters change nothing in its results.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut mine = MINE.get();
        mine.allocated += usize::from(layout.size() != STRETCH);
        mine.bytes += layout.size().cast_signed();
        MINE.set(mine);
        if is_slab(layout) {
            // Ordering: Relaxed, because the counter is only a sum.
            SLABS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let mut mine = MINE.get();
        mine.freed += usize::from(layout.size() != STRETCH);
        mine.bytes -= layout.size().cast_signed();
        MINE.set(mine);
        if is_slab(layout) {
            // Ordering: Relaxed, because the counter is only a sum.
            SLABS.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn is_slab(layout: Layout) -> bool {
    layout.align() == SLAB_BYTES
}

/// Runs `body`, and counts the calling thread's use of the allocator meanwhile.
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

/// Returns how many slabs are allocated, in use or kept.
pub(crate) fn slabs() -> usize {
    // Ordering: Relaxed, because the counter is only a sum.
    SLABS.load(Ordering::Relaxed)
}
