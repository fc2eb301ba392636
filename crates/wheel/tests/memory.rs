//! The memory that a wheel holds, measured with a counting allocator.
//!
//! The tests share the count, so they run one after the other.
#![allow(missing_docs)]

use ganger_wheel::Wheel;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

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

/// Memory for the test harness, which may allocate meanwhile on other threads.
const NOISE: usize = 16 << 10;

fn live() -> usize {
    // Ordering: Relaxed, because the counter is only a sum.
    LIVE.load(Ordering::Relaxed)
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a deadline within a minute, if the unit is a nanosecond.
fn within_a_minute(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 60_000_000_000
}

#[test]
fn an_empty_wheel_takes_nothing_and_one_with_a_timer_forty_kibibytes() {
    const WHEELS: usize = 100;
    let _alone = alone();
    let before = live();
    let mut wheels: Vec<_> = (0..WHEELS).map(|_| Wheel::new()).collect();
    let empty = (live().saturating_sub(before)) / WHEELS;
    assert!(empty <= 256, "{empty} bytes");
    for wheel in &mut wheels {
        wheel.insert(1, 1_u64);
    }
    let used = (live().saturating_sub(before)) / WHEELS;
    assert!(used <= 40 << 10, "{used} bytes");
}

#[test]
fn a_timer_takes_little_and_nothing_is_left_of_it() {
    const TIMERS: u64 = 200_000;
    let _alone = alone();
    let before = live();
    let mut wheel = Wheel::new();
    for number in 0..TIMERS {
        wheel.insert(within_a_minute(number), Waker::noop().clone());
    }
    let each = (live().saturating_sub(before)) as f64 / TIMERS as f64;
    assert!(each <= 40.0, "{each} bytes");
    wheel.clear();
    wheel.shrink();
    let left = live().saturating_sub(before);
    assert!(left <= NOISE, "{left} bytes");
}

#[test]
fn the_memory_of_what_is_cancelled_is_used_again() {
    const PENDING: u64 = 1_000;
    let _alone = alone();
    let mut wheel = Wheel::new();
    let mut keys: Vec<_> = (0..PENDING)
        .map(|number| wheel.insert(within_a_minute(number), number))
        .collect();
    // Timers may lie in other chunks later: at most one more chunk a slot.
    const CHUNKS: usize = 578 * 256;
    let before = live();
    for number in 0..100 * PENDING {
        let key = &mut keys[(number * 7 % PENDING) as usize];
        assert!(wheel.cancel(*key).is_some());
        *key = wheel.insert(within_a_minute(number), number);
    }
    let more = live().saturating_sub(before);
    assert!(more <= CHUNKS + NOISE, "{more} bytes more");
}

#[test]
fn a_shrink_after_a_burst_gives_its_memory_back() {
    let _alone = alone();
    let before = live();
    let mut wheel = Wheel::new();
    let kept = wheel.insert(5, 0_u64);
    let keys: Vec<_> = (0..100_000)
        .map(|number| wheel.insert(within_a_minute(number), number))
        .collect();
    for &key in &keys {
        assert!(wheel.cancel(key).is_some());
    }
    drop(keys);
    wheel.shrink();
    let left = live().saturating_sub(before);
    assert!(left <= 40 * 1024 + NOISE, "{left} bytes");
    assert_eq!(wheel.get(kept), Some(&0));
}

#[test]
fn a_burst_that_is_over_gives_its_memory_back_by_itself() {
    const BURST: u64 = 100_000;
    /// Room for 8,192 timers and the list of blocks.
    const KEPT: usize = 8_192 * 40 + NOISE;
    let _alone = alone();
    let before = live();
    let mut wheel = Wheel::new();
    let kept = wheel.insert(u64::MAX - 1, 0_u64);
    for fires in [false, true] {
        let keys: Vec<_> = (0..BURST)
            .map(|number| wheel.insert(within_a_minute(number), number))
            .collect();
        if fires {
            while wheel.advance(1 << 40, 64, drop) {
                wheel.shrink_after_burst();
            }
        }
        for key in keys {
            assert_eq!(wheel.cancel(key).is_none(), fires);
            wheel.shrink_after_burst();
        }
        let left = live().saturating_sub(before);
        assert!(left <= 2 * KEPT, "{left} bytes");
    }
    assert_eq!(wheel.get(kept), Some(&0));
}
