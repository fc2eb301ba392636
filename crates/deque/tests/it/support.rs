//! Helpers of the models.
//!
//! Loom runs the first thread first, and looks for other orders at the last access of each object
//! only. So the assignment of sides to threads may matter. A model for a certain fault has its
//! sides placed to catch it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use ganger_deque::{Stealer, Worker};

/// Returns a worker with room for `capacity` items that holds `items`, oldest first.
pub(crate) fn worker_with<T>(capacity: usize, items: impl IntoIterator<Item = T>) -> Worker<T> {
    let worker = Worker::with_capacity(capacity);
    for item in items {
        worker.push(item);
    }
    worker
}

/// Pops until the deque is empty.
pub(crate) fn drain<T>(worker: &Worker<T>) -> Vec<T> {
    std::iter::from_fn(|| worker.pop()).collect()
}

/// Tries once to take one item.
pub(crate) fn steal_once<T>(stealer: &Stealer<T>) -> Vec<T> {
    stealer.steal().success().into_iter().collect()
}

/// Tries once to take half, through a deque with room for `capacity` items.
pub(crate) fn steal_half_once<T>(stealer: &Stealer<T>, capacity: usize) -> Vec<T> {
    let dest = Worker::with_capacity(capacity);
    let taken = stealer.steal_half_into(&dest, usize::MAX).success();
    let items = drain(&dest);
    assert_eq!(taken.unwrap_or(0), items.len());
    items
}

/// Tries once to take half with `steal_half_and_pop`, through a deque with room for `capacity`
/// items. The newest comes first.
pub(crate) fn steal_half_and_pop_once<T>(stealer: &Stealer<T>, capacity: usize) -> Vec<T> {
    let dest = Worker::with_capacity(capacity);
    let oldest = stealer.steal_half_and_pop(&dest, usize::MAX).success();
    let mut items = drain(&dest);
    assert!(oldest.is_some() || items.is_empty());
    items.extend(oldest);
    items
}

/// Fails unless `parts` together hold each of `expected` exactly once.
pub(crate) fn assert_exactly_once<const N: usize>(
    parts: [Vec<u32>; N],
    expected: impl IntoIterator<Item = u32>,
) {
    let mut all = parts.concat();
    all.sort_unstable();
    assert_eq!(all, Vec::from_iter(expected));
}
