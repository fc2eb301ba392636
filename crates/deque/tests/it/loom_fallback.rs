//! Models without free light fences: the owner keeps no word, and each pop reads the limit anew.
#![cfg(ganger_loom)]

use crate::support::{assert_exactly_once, drain, steal_once, worker_with};
use ganger_sync::{fence, model, thread};

#[test]
fn a_pop_against_a_thief_without_free_fences() {
    fence::symmetric(|| {
        model::check(4, || {
            let worker = worker_with(2, [10]);
            let stealer = worker.stealer();
            let thief = thread::spawn(move || steal_once(&stealer));
            let popped = Vec::from_iter(worker.pop());
            assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..11);
        });
    });
}

/// Pops twice: with free fences, the second pop would know the word from the first.
#[test]
fn two_pops_against_a_thief_without_free_fences() {
    fence::symmetric(|| {
        model::check(4, || {
            let worker = worker_with(2, [10, 11]);
            let stealer = worker.stealer();
            let thief = thread::spawn(move || steal_once(&stealer));
            let mut popped = Vec::from_iter(worker.pop());
            popped.extend(worker.pop());
            assert_exactly_once([popped, thief.join().unwrap(), drain(&worker)], 10..12);
        });
    });
}
