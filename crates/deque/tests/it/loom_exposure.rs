//! A thief that finds no item exposed, against an owner that pops without a CAS.

use crate::support::{assert_exactly_once, drain, steal_half_once, steal_once, worker_with};
use ganger_sync::atomic::{AtomicU32, Ordering};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

#[test]
fn one_item_for_two() {
    model::check(5, || {
        let worker = worker_with(4, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..11);
    });
}

#[test]
fn private_items_against_a_thief_that_takes_half() {
    model::check(3, || {
        let worker = worker_with(4, 10..13);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        let mut popped = Vec::new();
        for _ in 0..3 {
            popped.extend(worker.pop());
        }
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

#[test]
fn an_index_that_is_popped_and_pushed_again() {
    model::check(4, || {
        let worker = worker_with(2, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        let mut popped = Vec::from_iter(worker.pop());
        worker.push(11);
        popped.extend(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

/// Checks that the word publishes the exposed item, also to a thief whose `bottom` belongs to an
/// earlier item at the same index.
#[test]
fn another_item_is_exposed_at_the_same_index() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        let popped = Vec::from_iter(worker.pop());
        worker.push(11);
        worker.expose();
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

#[test]
fn the_owner_exposes_while_a_thief_announces() {
    model::check(4, || {
        let worker = worker_with(2, [10, 11]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 1));
        worker.expose();
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

#[test]
fn the_owner_steals_from_itself_while_a_thief_does() {
    model::check(4, || {
        let worker = worker_with(2, [10, 11]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        let own = steal_once(&worker.stealer());
        assert_exactly_once([own, thief.join().unwrap(), drain(&worker)], 10..12);
    });
}

/// Checks that a claim that leaves the owner no item publishes the thief's earlier actions.
#[test]
fn an_owner_that_finds_nothing_sees_what_the_thief_did() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        worker.expose();
        let stealer = worker.stealer();
        let done = Arc::new(AtomicU32::new(0));
        let thief = thread::spawn({
            let done = Arc::clone(&done);
            move || {
                // Ordering: Relaxed, because the deque must order it.
                done.store(1, Ordering::Relaxed);
                steal_once(&stealer)
            }
        });
        let popped = Vec::from_iter(worker.pop());
        if popped.is_empty() {
            // Ordering: Relaxed, because the deque must order it.
            assert_eq!(done.load(Ordering::Relaxed), 1);
        }
        assert_exactly_once([popped, thief.join().unwrap()], 10..11);
    });
}

/// Checks that a thief needs no help: alone, it gets its item at the first attempt.
#[test]
fn an_owner_that_stands_still_is_no_obstacle() {
    model::check(3, || {
        let worker = worker_with(4, 10..13);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let first = steal_once(&stealer);
            assert_eq!(first, [10]);
            let second = steal_once(&stealer);
            assert_eq!(second, [11]);
        });
        thief.join().unwrap();
        assert_exactly_once([drain(&worker)], 12..13);
    });
}
