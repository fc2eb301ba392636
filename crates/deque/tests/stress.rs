//! Real threads, and an account of every item: each is dropped exactly once, by whoever got it.
//!
//! `GANGER_STRESS` multiplies the work (default 1: a few seconds). A failure prints the seed;
//! `GANGER_STRESS_SEED` repeats it, as far as threads can be repeated.
#![cfg(not(loom))]
#![allow(missing_docs)]

use ganger_deque::{Steal, Stealer, Worker};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

/// How often each item has been dropped.
struct Ledger {
    drops: Vec<AtomicU8>,
    entered: AtomicUsize,
}

/// An item whose destructor enters it into the ledger. Its identity is on the heap and twice there,
/// so that a torn or stale copy shows.
struct Item<'a> {
    id: Box<(usize, usize)>,
    ledger: &'a Ledger,
}

impl Ledger {
    fn new(items: usize) -> Self {
        Self {
            drops: (0..items).map(|_| AtomicU8::new(0)).collect(),
            entered: AtomicUsize::new(0),
        }
    }

    fn item(&self, id: usize) -> Item<'_> {
        Item {
            id: Box::new((id, !id)),
            ledger: self,
        }
    }

    fn entered(&self) -> usize {
        // Ordering: Relaxed, because it only tells a thief when to stop.
        self.entered.load(Ordering::Relaxed)
    }

    fn assert_settled(&self, seed: u64) {
        for (id, drops) in self.drops.iter().enumerate() {
            // Ordering: Relaxed, because all threads have been joined.
            let drops = drops.load(Ordering::Relaxed);
            assert_eq!(drops, 1, "drops of item {id}, seed {seed}");
        }
    }
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        let (id, check) = *self.id;
        assert_eq!(id, !check, "a torn item");
        // Ordering: Relaxed, because joining the threads orders it before the account is read.
        self.ledger.drops[id].fetch_add(1, Ordering::Relaxed);
        self.ledger.entered.fetch_add(1, Ordering::Relaxed);
    }
}

fn factor() -> usize {
    std::env::var("GANGER_STRESS").map_or(1, |factor| factor.parse().unwrap())
}

fn seed() -> u64 {
    std::env::var("GANGER_STRESS_SEED").map_or_else(|_| fastrand::u64(..), |s| s.parse().unwrap())
}

/// Lets the others run, now and then: threads that share a core meet nowhere else.
fn yield_at_random(random: &mut fastrand::Rng, one_in: u32) {
    if random.u32(0..one_in) == 0 {
        thread::yield_now();
    }
}

/// Steals in both ways until `done`.
fn thief(stealer: &Stealer<Item<'_>>, seed: u64, done: impl Fn() -> bool) {
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
        let Steal::Success(count) = stealer.steal_half_into(&own, limit) else {
            yield_at_random(&mut random, 16);
            continue;
        };
        assert!(count <= limit && count <= own.len());
        let mut newest = usize::MAX;
        for _ in 0..count {
            let item = own.pop().expect("nobody steals from a thief here");
            assert!(item.id.0 < newest, "order is kept");
            newest = item.id.0;
        }
    }
}

/// An owner that pushes, pops and exposes at random, against `thieves`.
fn owner_against(thieves: u64, items: usize) {
    let seed = seed();
    let ledger = Ledger::new(items);
    let worker = Worker::with_capacity(1);
    let stealer = worker.stealer();
    let start = Barrier::new(usize::try_from(thieves).unwrap() + 1);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..thieves {
            let (stealer, start, finished) = (stealer.clone(), &start, &finished);
            scope.spawn(move || {
                start.wait();
                // Ordering: Relaxed, because it only tells when to stop.
                let done = || finished.load(Ordering::Relaxed);
                thief(&stealer, seed ^ (number + 1), done);
            });
        }
        start.wait();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pushed = 0;
        while pushed < items {
            // Short bursts keep the deque nearly empty, which is where the races are; now and then
            // a long one makes it grow.
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
        // Some of the items are left to the destructor, with the thieves still at work.
        drop(worker);
        assert!(stealer.is_empty());
        finished.store(true, Ordering::Relaxed);
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

/// An owner that fills its deque and then does nothing at all until thieves have emptied it.
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
            for number in 0..3 {
                let (stealer, ledger) = (worker.stealer(), &ledger);
                let done = || ledger.entered() == ITEMS;
                scope.spawn(move || thief(&stealer, seed ^ round << 8 ^ number, done));
            }
        });
        assert_eq!(worker.len(), 0);
        ledger.assert_settled(seed);
    }
}

/// One item at a time, pushed and popped at the same index, with thieves after it.
#[test]
fn one_item_at_a_time() {
    let items = 6_000_000 * factor();
    let seed = seed();
    let ledger = Ledger::new(items);
    let worker = Worker::with_capacity(1);
    let finished = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 1..3 {
            let (stealer, finished) = (worker.stealer(), &finished);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ number);
                // Ordering: Relaxed, because it only tells when to stop.
                while !finished.load(Ordering::Relaxed) {
                    if stealer.steal().is_empty() {
                        yield_at_random(&mut random, 16);
                    }
                }
            });
        }
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
    });
    ledger.assert_settled(seed);
}

/// Workers that steal from each other until everything is done: items move through many deques.
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
        for (number, worker) in workers.into_iter().enumerate() {
            let (stealers, ledger) = (&stealers, &ledger);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ number as u64);
                while ledger.entered() < items {
                    for _ in 0..random.usize(0..8) {
                        drop(worker.pop());
                    }
                    yield_at_random(&mut random, 64);
                    let victim = &stealers[random.usize(0..stealers.len())];
                    // Its own deque may be among them.
                    let _outcome = victim.steal_half_into(&worker, random.usize(0..100));
                }
            });
        }
    });
    ledger.assert_settled(seed);
}
