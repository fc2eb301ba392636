//! The owner moves to a smaller ring while a thief steals.

use crate::support::{assert_exactly_once, drain, steal_half_once, steal_once, worker_with};
use ganger_sync::{model, sized, thread};

/// Twice the capacity to which a deque shrinks.
const LARGE: usize = sized(32, 8);

#[test]
fn shrinking_while_exposed_items_are_claimed() {
    model::check(4, || {
        let worker = worker_with(LARGE, [10, 11]);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        worker.shrink_to_fit();
        assert_eq!(worker.capacity(), LARGE / 2);
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

/// Lets the thief have the old ring, without an item pushed afterwards by the owner.
#[test]
fn shrinking_while_private_items_are_claimed() {
    model::check(4, || {
        let worker = worker_with(LARGE, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        worker.shrink_to_fit();
        worker.push(11);
        worker.push(12);
        assert_exactly_once([thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

#[test]
fn shrinking_and_another_item_at_the_same_index() {
    model::check(4, || {
        let worker = worker_with(LARGE, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        worker.shrink_to_fit();
        let popped = Vec::from_iter(worker.pop());
        worker.push(11);
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

/// Checks that a slot is free before it is used again: a smaller ring comes round to its first slot
/// sooner.
#[test]
fn slots_of_a_smaller_ring_are_reused_after_their_release_only() {
    model::check(3, || {
        let worker = worker_with(LARGE, 10..13);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        worker.shrink_to_fit();
        worker.push(13);
        worker.push(14);
        worker.push(15);
        assert_exactly_once([thief.join().unwrap(), drain(&worker)], 10..16);
    });
}
