//! The memory that a deque holds, measured with a counting allocator.
//!
//! The tests share the count, so they run one after the other.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

use ganger_deque::{Steal, Worker};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system allocator does the work; the counter changes nothing in its results.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Ordering: Relaxed, because the counter is only a sum.
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Ordering: Relaxed, because the counter is only a sum.
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns how many bytes are allocated. The harness may allocate a few kilobytes meanwhile on
/// other threads.
fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn an_empty_deque_takes_less_than_a_kibibyte() {
    const DEQUES: usize = 1_000;
    let _alone = alone();
    let before = live();
    let deques: Vec<_> = (0..DEQUES).map(|_| Worker::<[u64; 2]>::new()).collect();
    let each = (live() - before) / DEQUES;
    assert!(each <= 1_024, "{each} bytes");
    drop(deques);
}

/// Runs without a thief: none is needed.
#[test]
fn shrinking_and_dropping_return_what_a_burst_has_left() {
    const ITEMS: usize = 1 << 17;
    let _alone = alone();
    let worker = Worker::new();
    let before = live();
    (0..ITEMS).for_each(|item| worker.push(item));
    assert_eq!(worker.capacity(), ITEMS);
    while worker.len() > 10 {
        worker.pop();
    }
    worker.shrink_to_fit();
    assert_eq!(worker.capacity(), 16);
    let left = live().saturating_sub(before);
    assert!(left < 64 * 1_024, "{left} bytes after shrinking");
    let rest: Vec<_> = std::iter::from_fn(|| worker.pop()).collect();
    assert_eq!(rest.len(), 10);

    (0..ITEMS).for_each(|item| worker.push(item));
    drop(worker);
    let left = live().saturating_sub(before);
    assert!(left < 64 * 1_024, "{left} bytes after dropping");
}

/// Keeps thieves in the middle of a steal at any moment, while the owner grows and shrinks again
/// and again. Its old rings are freed while the thieves go on. A thief suspended by the system in a
/// steal delays this.
#[test]
fn old_rings_are_freed_while_thieves_keep_stealing() {
    const ITEMS: usize = 1 << 14;
    const LARGEST: usize = ITEMS * size_of::<usize>();
    let _alone = alone();
    let worker = Worker::new();
    let stealer = worker.stealer();
    let finished = AtomicBool::new(false);
    let before = live();
    let burst = || {
        (0..ITEMS).for_each(|item| worker.push(item));
        while worker.pop().is_some() {}
        worker.shrink_to_fit();
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // Ordering: Relaxed, because it only tells when to stop.
                while !finished.load(Ordering::Relaxed) {
                    if !stealer.steal().is_success() {
                        thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..10 {
            (0..50).for_each(|_| burst());
            settle(|| {
                burst();
                live() < before + 4 * LARGEST
            });
        }
        // Ordering: Relaxed, because it only tells when to stop.
        finished.store(true, Ordering::Relaxed);
    });
    settle(|| {
        worker.push(0);
        assert!(stealer.steal().is_success());
        live() < before + 32 * 1_024
    });
}

/// Enough turns for any epoch to pass, few enough to fail a test.
const MOST_TURNS: u32 = 1_000_000;

/// Steals until `done` returns true, which it must: steals make the epoch pass.
fn settle(done: impl Fn() -> bool) {
    let turns = (0..MOST_TURNS).find(|_| done());
    assert!(turns.is_some(), "{} bytes are left", live());
}

#[test]
fn a_ring_is_less_than_twice_as_large_as_what_was_in_it() {
    let _alone = alone();
    for items in [17, 31, 32, 33, 1_000, 1_025, 100_000] {
        let worker = Worker::new();
        (0..items).for_each(|item| worker.push(item));
        assert!((items..2 * items).contains(&worker.capacity()));
        // Items that pass through do not enlarge the ring, whichever thread takes them.
        let stealer = worker.stealer();
        for item in 0..2 * items {
            assert!(stealer.steal().is_success());
            worker.push(item);
        }
        assert!((items..2 * items).contains(&worker.capacity()));
    }
}

#[test]
fn a_thief_makes_room_for_what_it_may_get() {
    let _alone = alone();
    let victim = Worker::new();
    victim.push(0);
    victim.expose();
    (1..100_000).for_each(|item| victim.push(item));
    let dest = Worker::new();
    let stolen = victim.stealer().steal_half_into(&dest, usize::MAX);
    assert_eq!(stolen, Steal::Success(1));
    assert_eq!(dest.capacity(), 16);
}
