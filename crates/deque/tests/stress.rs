//! Real threads, with an account of every item: the thread that gets it drops it, exactly once.
//!
//! `GANGER_STRESS` multiplies the work (default 1: a few seconds). A failure prints the seed;
//! `GANGER_STRESS_SEED` repeats it, as far as threads can be repeated.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

use ganger_deque::{Stealer, Worker};
use ganger_soak::chance::{seed, yield_at_random};
use ganger_soak::{Item, Ledger};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

fn factor() -> usize {
    std::env::var("GANGER_STRESS").map_or(1, |factor| factor.parse().unwrap())
}

/// Waits for threads one by one. A sanitizer sees these joins, but not a scope's wait for the rest.
fn join<'a>(threads: impl IntoIterator<Item = ScopedJoinHandle<'a, ()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Steals in all ways until `done`.
fn thief(stealer: &Stealer<Item<'_>>, seed: u64, mut done: impl FnMut() -> bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let own = Worker::with_capacity(1);
    while !done() {
        if random.bool() {
            let outcome = stealer.steal();
            if !outcome.is_success() {
                yield_at_random(&mut random, 16);
            }
            continue;
        }
        let limit = random.usize(0..40).saturating_sub(4);
        let (count, oldest) = if random.bool() {
            let stolen = stealer.steal_half_into(&own, limit);
            (stolen.success(), None)
        } else {
            let stolen = stealer.steal_half_and_pop(&own, limit).success();
            (stolen.is_some().then(|| own.len() + 1), stolen)
        };
        let Some(count) = count else {
            yield_at_random(&mut random, 16);
            continue;
        };
        assert!(count <= limit && count == own.len() + usize::from(oldest.is_some()));
        let mut newest = usize::MAX;
        for item in std::iter::from_fn(|| own.pop()).chain(oldest) {
            assert!(item.id() < newest, "order is kept");
            newest = item.id();
        }
    }
}

/// Runs an owner that pushes, pops and exposes at random, against `thieves` thieves.
fn owner_against(thieves: u64, items: usize) {
    let seed = seed();
    let ledger = Ledger::new(items);
    let worker = Worker::with_capacity(1);
    let stealer = worker.stealer();
    let start = Barrier::new(usize::try_from(thieves).unwrap() + 1);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let thieves = (0..thieves).map(|number| {
            let (stealer, start, finished) = (stealer.clone(), &start, &finished);
            scope.spawn(move || {
                start.wait();
                // Ordering: Relaxed, because it only tells when to stop.
                let done = || finished.load(Ordering::Relaxed);
                thief(&stealer, seed ^ (number + 1), done);
            })
        });
        let thieves: Vec<_> = thieves.collect();
        start.wait();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pushed = 0;
        while pushed < items {
            // Short bursts keep the deque nearly empty, where the races are. Now and then a long
            // burst makes it grow.
            let longest = if random.u32(0..2_000) == 0 { 2_000 } else { 4 };
            for _ in 0..random.usize(0..=longest).min(items - pushed) {
                worker.push(ledger.item(pushed));
                pushed += 1;
            }
            match random.u32(0..20) {
                0 => worker.expose(),
                1 => drop(stealer.steal()),
                _ => {}
            }
            yield_at_random(&mut random, 64);
            let before = worker.len();
            for _ in 0..random.usize(0..=longest) {
                drop(worker.pop());
            }
            assert!(worker.len() <= before, "only the owner adds items");
        }
        // Some items are left to the destructor, while thieves still steal.
        drop(worker);
        assert!(stealer.is_empty());
        finished.store(true, Ordering::Relaxed);
        join(thieves);
    });
    ledger.assert_settled(seed);
}

#[test]
fn one_thief() {
    owner_against(1, 3_000_000 * factor());
}

#[test]
fn two_thieves() {
    owner_against(2, 3_000_000 * factor());
}

#[test]
fn three_thieves() {
    owner_against(3, 3_000_000 * factor());
}

/// Fills the deque; then the owner waits until thieves have emptied it.
#[test]
fn an_owner_that_stands_still() {
    const ITEMS: usize = 1_000;
    let seed = seed();
    for round in 0..1_000 * factor() as u64 {
        let ledger = Ledger::new(ITEMS);
        let worker = Worker::new();
        for id in 0..ITEMS {
            worker.push(ledger.item(id));
        }
        thread::scope(|scope| {
            let thieves = [0, 1, 2].map(|number| {
                let (stealer, ledger) = (worker.stealer(), &ledger);
                let mut seen = 0;
                let done = move || ledger.is_complete(&mut seen);
                scope.spawn(move || thief(&stealer, seed ^ round << 8 ^ number, done))
            });
            join(thieves);
        });
        assert_eq!(worker.len(), 0);
        ledger.assert_settled(seed);
    }
}

/// Pushes and pops an item at a time, at the same index, while thieves try to steal it.
#[test]
fn one_item_at_a_time() {
    let items = 6_000_000 * factor();
    let seed = seed();
    let ledger = Ledger::new(items);
    let worker = Worker::with_capacity(1);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        let thieves = [1, 2].map(|number| {
            let (stealer, finished) = (worker.stealer(), &finished);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ number);
                // Ordering: Relaxed, because it only tells when to stop.
                while !finished.load(Ordering::Relaxed) {
                    if stealer.steal().is_empty() {
                        yield_at_random(&mut random, 16);
                    }
                }
            })
        });
        let mut random = fastrand::Rng::with_seed(seed);
        for id in 0..items {
            worker.push(ledger.item(id));
            if random.u32(0..3) == 0 {
                worker.expose();
            }
            yield_at_random(&mut random, 64);
            drop(worker.pop());
        }
        finished.store(true, Ordering::Relaxed);
        join(thieves);
    });
    ledger.assert_settled(seed);
}

/// Has workers steal from each other until all items are dropped: items move through many deques.
#[test]
fn workers_steal_from_each_other() {
    let items = 3_000_000 * factor();
    let seed = seed();
    let ledger = Ledger::new(items);
    let workers: Vec<_> = (0..3).map(|_| Worker::with_capacity(2)).collect();
    let stealers: Vec<_> = workers.iter().map(Worker::stealer).collect();
    for id in 0..items {
        workers[id % 2].push(ledger.item(id));
    }
    thread::scope(|scope| {
        let threads = workers.into_iter().enumerate().map(|(number, worker)| {
            let (stealers, ledger) = (&stealers, &ledger);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ number as u64);
                let mut seen = 0;
                while !ledger.is_complete(&mut seen) {
                    for _ in 0..random.usize(0..8) {
                        drop(worker.pop());
                    }
                    yield_at_random(&mut random, 64);
                    let victim = &stealers[random.usize(0..stealers.len())];
                    // The victim may be the worker itself.
                    let _outcome = victim.steal_half_into(&worker, random.usize(0..100));
                }
            })
        });
        join(threads.collect::<Vec<_>>());
    });
    ledger.assert_settled(seed);
}
