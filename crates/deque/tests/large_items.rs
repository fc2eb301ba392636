//! A deque of large items needs neither stack nor pages for slots without an item.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

use ganger_deque::{Steal, Worker};
use std::thread;

const LARGE: usize = 320 * 1_024;

/// Runs `f` on a thread whose stack is smaller than an item.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(LARGE / 2);
    thread.spawn(f).unwrap().join().unwrap();
}

#[test]
fn a_deque_of_large_items_shrinks_is_stolen_from_and_dropped_on_a_small_stack() {
    let filled = Worker::<[u8; LARGE]>::with_capacity(64);
    (0..3).for_each(|item| filled.push([item; LARGE]));
    on_a_small_stack(move || {
        filled.shrink_to_fit();
        let dest = Worker::new();
        assert_eq!(
            filled.stealer().steal_half_into(&dest, 4),
            Steal::Success(2)
        );
        assert_eq!((filled.capacity(), filled.len(), dest.len()), (16, 1, 2));
    });
}

/// Returns how many pages of the process are in memory.
#[cfg(target_os = "linux")]
fn resident_pages() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Counts the pages: the 65,536 slots have 65,536 pages or more; the other test of this file has at
/// most 400.
#[cfg(target_os = "linux")]
#[test]
fn slots_without_an_item_touch_no_pages() {
    let before = resident_pages();
    let worker = Worker::<[u8; 4_096]>::with_capacity(65_536);
    let touched = resident_pages().saturating_sub(before);
    assert!(touched < 4_096, "{touched} pages");
    worker.push([7; 4_096]);
    assert_eq!(worker.pop(), Some([7; 4_096]));
}
