//! Two thieves and one owner.

use crate::support::{assert_exactly_once, drain, steal_half_once, steal_once, worker_with};
use ganger_sync::{model, thread};

/// Lets each thief meet the other's announcement, and settle it.
#[test]
fn both_find_nothing_exposed() {
    model::check(3, || {
        let worker = worker_with(2, [10, 11]);
        let thief = || {
            let stealer = worker.stealer();
            thread::spawn(move || steal_once(&stealer))
        };
        let (first, second) = (thief(), thief());
        let popped = Vec::from_iter(worker.pop());
        assert_exactly_once(
            [
                popped,
                first.join().unwrap(),
                second.join().unwrap(),
                drain(&worker),
            ],
            10..12,
        );
    });
}

/// Suspends a thief between its second look at `bottom` and its claim. Meanwhile the owner takes
/// the item back, pushes and pops another, and the other thief announces. The word must differ.
#[test]
fn a_suspended_claim_does_not_match_a_later_announcement() {
    model::check(4, || {
        let worker = worker_with(1, [10]);
        let (first, second) = (worker.stealer(), worker.stealer());
        let owner = thread::spawn(move || {
            let mut popped = Vec::from_iter(worker.pop());
            worker.push(11);
            popped.extend(worker.pop());
            (popped, worker)
        });
        let other = thread::spawn(move || steal_once(&second));
        let stolen = steal_once(&first);
        let (popped, worker) = owner.join().unwrap();
        assert_exactly_once(
            [popped, stolen, other.join().unwrap(), drain(&worker)],
            10..12,
        );
    });
}

/// Lets the thief with the later claim release earlier. The owner must not take its release for the
/// release of the other.
#[test]
fn releases_come_out_of_order() {
    model::check(4, || {
        let worker = worker_with(2, [10, 11]);
        worker.expose();
        let (first, second) = (worker.stealer(), worker.stealer());
        let owner = thread::spawn(move || {
            worker.push(12);
            worker
        });
        let other = thread::spawn(move || steal_once(&second));
        let stolen = steal_once(&first);
        let worker = owner.join().unwrap();
        assert_exactly_once([stolen, other.join().unwrap(), drain(&worker)], 10..13);
    });
}

/// Steals the items left exposed by the first thief, without the owner.
#[test]
fn thieves_share_what_one_has_exposed() {
    model::check(3, || {
        let worker = worker_with(4, 10..14);
        let (first, second) = (worker.stealer(), worker.stealer());
        let other = thread::spawn(move || steal_half_once(&second, 2));
        let stolen = steal_half_once(&first, 2);
        assert_exactly_once([stolen, other.join().unwrap(), drain(&worker)], 10..14);
    });
}
