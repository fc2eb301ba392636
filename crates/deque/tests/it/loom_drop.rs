//! The worker is dropped while items are inside and a thief steals.

use crate::support::worker_with;
use ganger_deque::Worker;
use ganger_sync::{model, thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts its drops, with a counter of `std`, which is not part of the model.
struct Counted(Arc<AtomicU32>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Ordering: Relaxed, because joining the threads orders it before the assertion.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counted(count: u32) -> (Vec<Arc<AtomicU32>>, Vec<Counted>) {
    let counters: Vec<_> = (0..count).map(|_| Arc::default()).collect();
    let items = counters.iter().cloned().map(Counted).collect();
    (counters, items)
}

fn assert_dropped_once(counters: &[Arc<AtomicU32>]) {
    for (item, counter) in counters.iter().enumerate() {
        // Ordering: Relaxed, because all threads have been joined.
        assert_eq!(counter.load(Ordering::Relaxed), 1, "drops of item {item}");
    }
}

#[test]
fn a_drop_against_a_steal() {
    model::check(4, || {
        let (counters, items) = counted(2);
        let worker = worker_with(2, items);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        drop(worker);
        thief.join().unwrap();
        assert_dropped_once(&counters);
    });
}

#[test]
fn a_drop_against_a_claim_of_half() {
    model::check(3, || {
        let (counters, items) = counted(3);
        let worker = worker_with(4, items);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let dest = Worker::with_capacity(2);
            let _outcome = stealer.steal_half_into(&dest, 2);
        });
        drop(worker);
        thief.join().unwrap();
        assert_dropped_once(&counters);
    });
}

/// Lets the growth and the drop overtake the thief's copy.
#[test]
fn growth_and_drop_against_a_steal() {
    model::check(3, || {
        let (counters, mut items) = counted(3);
        let last = items.pop();
        let worker = worker_with(2, items);
        worker.expose();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        worker.push(last.unwrap());
        drop(worker);
        thief.join().unwrap();
        assert_dropped_once(&counters);
    });
}
