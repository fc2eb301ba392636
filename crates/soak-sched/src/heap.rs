//! An allocator that counts the bytes in use.
//!
//! **Problem.** Resident memory includes the free memory that the system's allocator keeps. So it
//! says little about a leak.
//!
//! Each thread adds to a shared count of several. Each count has a cache line of its own, so that
//! threads disturb each other less.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// As many as the threads of a small scheduler.
const COUNTS: usize = 16;

#[repr(align(128))]
struct Count(AtomicUsize);

/// Bytes allocated by a count's threads less bytes freed, modulo 2^64: the sum of the counts is the
/// bytes in use.
static LIVE: [Count; COUNTS] = [const { Count(AtomicUsize::new(0)) }; COUNTS];

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The index of this thread's count. Has no destructor, so that it lives as long as the thread.
    static MINE: Cell<usize> = const { Cell::new(COUNTS) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes in use. Exact where no other thread allocates meanwhile.
pub(crate) fn live() -> u64 {
    // Ordering: Relaxed: counts.
    let each = LIVE.iter().map(|count| count.0.load(Ordering::Relaxed));
    each.fold(0, usize::wrapping_add) as u64
}

fn mine() -> &'static AtomicUsize {
    let mut mine = MINE.get();
    if mine == COUNTS {
        // Ordering: Relaxed: a number.
        mine = NEXT.fetch_add(1, Ordering::Relaxed) % COUNTS;
        MINE.set(mine);
    }
    &LIVE[mine].0
}

/// Adds to the bytes in use, modulo 2^64.
fn add(bytes: usize) {
    // Ordering: Relaxed: a count.
    mine().fetch_add(bytes, Ordering::Relaxed);
}

// SAFETY: the system's allocator does everything; the counts change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: by the contract of this function.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        add(layout.size().wrapping_neg());
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.wrapping_sub(layout.size()));
        // SAFETY: by the contract of this function.
        unsafe { System.realloc(memory, layout, size) }
    }
}
