//! The owner moves to another ring while a thief steals.

use crate::support::{assert_exactly_once, drain, steal_half_once, steal_once, worker_with};
use ganger_sync::{model, thread};

#[test]
fn growth_while_exposed_items_are_claimed() {
    model::check(4, || {
        let worker = worker_with(2, [10, 11]);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        worker.push(12);
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Lets the thief look at the deque before the growth, and then claim an item that only the new
/// ring holds.
#[test]
fn growth_while_private_items_are_claimed() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        worker.push(11);
        worker.push(12);
        assert_exactly_once([thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Moves the owner between the thief's first look and its announcement: the owner pops everything
/// without a CAS, and pushes another item at the same index. Only the new ring holds this item.
#[test]
fn growth_and_another_item_at_the_same_index() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        worker.push(11);
        let mut popped = Vec::from_iter(worker.pop());
        popped.extend(worker.pop());
        worker.push(12);
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Moves the owner in the same way; the owner then exposes the item. The word publishes the ring,
/// also to a thief whose `bottom` and ring would otherwise belong to the first item.
#[test]
fn growth_and_another_exposed_item_at_the_same_index() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_once(&stealer));
        worker.push(11);
        let mut popped = Vec::from_iter(worker.pop());
        popped.extend(worker.pop());
        worker.push(12);
        worker.expose();
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Moves the owner twice. The second move may find the slots of the first ring copied out.
#[test]
fn repeated_growth_against_two_steals() {
    model::check(3, || {
        let worker = worker_with(1, [10]);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || [steal_once(&stealer), steal_once(&stealer)].concat());
        worker.push(11);
        worker.push(12);
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Grows the deque into which the thief steals.
#[test]
fn a_destination_grows_while_it_is_stolen_from() {
    model::check(3, || {
        let victim = worker_with(4, 10..14);
        let dest = worker_with(1, [14]);
        let stealer = dest.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        assert_eq!(
            victim.stealer().steal_half_into(&dest, 9).success(),
            Some(2)
        );
        assert_exactly_once(
            [thief.join().unwrap(), drain(&dest), drain(&victim)],
            10..15,
        );
    });
}
