//! The owner against one thief that takes half of the exposed items.

use crate::support::{
    assert_exactly_once, drain, steal_half_and_pop_once, steal_half_once, steal_once, worker_with,
};
use ganger_sync::{model, thread};

#[test]
fn pops_against_a_claim_of_half() {
    model::check(3, || {
        let worker = worker_with(4, 10..14);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        let mut popped = Vec::new();
        for _ in 0..3 {
            popped.extend(worker.pop());
        }
        let stolen = thief.join().unwrap();
        assert!(stolen.is_sorted_by(|a, b| a > b), "order is kept");
        assert_exactly_once([popped, stolen, drain(&worker)], 10..14);
    });
}

#[test]
fn pops_against_a_claim_of_half_whose_oldest_is_run_at_once() {
    model::check(3, || {
        let worker = worker_with(4, 10..14);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_and_pop_once(&stealer, 1));
        let mut popped = Vec::new();
        for _ in 0..3 {
            popped.extend(worker.pop());
        }
        let stolen = thief.join().unwrap();
        assert!(stolen.is_sorted_by(|a, b| a > b), "order is kept");
        assert_exactly_once([popped, stolen, drain(&worker)], 10..14);
    });
}

/// Writes the slot again by the owner, once the thief has copied the item out.
#[test]
fn pushes_into_the_slot_of_the_item_that_is_run_at_once() {
    model::check(3, || {
        let worker = worker_with(2, 10..12);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_and_pop_once(&stealer, 1));
        worker.push(12);
        worker.push(13);
        let stolen = thief.join().unwrap();
        assert_exactly_once([stolen, drain(&worker)], 10..14);
    });
}

/// Claims a single item: half of all items is two, and only one item is exposed. A larger claim
/// would take an item that the owner pops without a CAS.
#[test]
fn free_pops_against_a_claim_where_less_than_half_is_exposed() {
    model::check(3, || {
        let worker = worker_with(4, 10..14);
        worker.expose();
        assert_eq!(worker.pop(), Some(13));
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 2));
        let mut popped = Vec::new();
        for _ in 0..2 {
            popped.extend(worker.pop());
        }
        let stolen = thief.join().unwrap();
        assert_exactly_once([popped, stolen, drain(&worker)], 10..13);
    });
}

/// Writes the slots of a claim again only after they have been copied out. The ring is full, so the
/// owner learns of the copies, or grows.
#[test]
fn pushes_into_slots_that_a_thief_copies_out() {
    model::check(3, || {
        let worker = worker_with(2, 10..12);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half_once(&stealer, 1));
        worker.push(12);
        worker.push(13);
        let stolen = thief.join().unwrap();
        assert_exactly_once([stolen, drain(&worker)], 10..14);
    });
}

/// Lets the thief look, and then the owner pop the item and push two others. The thief announces,
/// and its second look reads the store of the owner's last pop. Only this store orders the write of
/// the item below before the thief's read.
#[test]
fn a_claim_that_rests_on_the_store_of_a_pop() {
    model::check(4, || {
        let worker = worker_with(2, [10]);
        let stealer = worker.stealer();
        let owner = thread::spawn(move || {
            let mut popped = Vec::from_iter(worker.pop());
            worker.push(11);
            worker.push(12);
            popped.extend(worker.pop());
            (popped, worker)
        });
        let stolen = steal_once(&stealer);
        let (popped, worker) = owner.join().unwrap();
        assert_exactly_once([popped, stolen, drain(&worker)], 10..13);
    });
}
