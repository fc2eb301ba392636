//! Recorded histories of real threads, checked against the limits of the locks.

use ganger_lock::{Mutex, RwLock, Semaphore, block_on};
use std::sync::atomic::{AtomicU64, Ordering};

/// The begin and end of a thread's visit, by a clock of ticks.
#[derive(Debug, Clone, Copy)]
struct Visit {
    began: u64,
    ended: u64,
    weight: usize,
    /// The value seen by the visit; a writer then adds 1.
    value: Option<u64>,
}

static CLOCK: AtomicU64 = AtomicU64::new(0);

fn tick() -> u64 {
    // Ordering: SeqCst: all ticks have a single order, in which each tick comes inside of its
    // visit.
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// Returns the most weight inside at any moment.
fn most(visits: &[Visit]) -> usize {
    let begins = visits.iter().map(|it| (it.began, it.weight as isize));
    let ends = visits.iter().map(|it| (it.ended, -(it.weight as isize)));
    let mut changes: Vec<_> = begins.chain(ends).collect();
    changes.sort_unstable();
    let inside = changes.iter().scan(0, |inside, (_, change)| {
        *inside += change;
        Some(*inside)
    });
    inside.max().unwrap_or_default().unsigned_abs()
}

/// Returns whether the writers in the order of their visits saw the numbers in order.
fn is_linear(mut visits: Vec<Visit>) -> bool {
    visits.retain(|it| it.value.is_some());
    visits.sort_by_key(|it| it.began);
    (0..)
        .zip(visits)
        .all(|(number, it)| it.value == Some(number))
}

fn record(threads: usize, visit: impl Fn(&mut fastrand::Rng) -> Visit + Sync) -> Vec<Visit> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|seed| {
                let visit = &visit;
                scope.spawn(move || {
                    let mut rng = fastrand::Rng::with_seed(seed as u64);
                    (0..400).map(|_| visit(&mut rng)).collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    })
}

// pins: K1
#[test]
fn a_mutex_lets_one_in_at_a_time_in_one_order() {
    let mutex = Mutex::new(0_u64);
    let visits = record(4, |rng| {
        let mut value = if rng.bool() {
            mutex.lock_blocking().unwrap()
        } else {
            block_on(mutex.lock()).unwrap()
        };
        let began = tick();
        let seen = *value;
        if rng.u8(..) < 8 {
            std::thread::yield_now();
        }
        *value = seen + 1;
        let ended = tick();
        Visit {
            began,
            ended,
            weight: 1,
            value: Some(seen),
        }
    });
    assert_eq!(most(&visits), 1);
    assert!(is_linear(visits));
}

// pins: K5
#[test]
fn a_read_write_lock_lets_readers_or_one_writer_in() {
    const WRITER: usize = 100;
    let lock = RwLock::new(0_u64);
    let visits = record(4, |rng| {
        let weight = if rng.u8(..) < 64 { WRITER } else { 1 };
        if weight == WRITER {
            let mut value = lock.write_blocking().unwrap();
            let (began, seen) = (tick(), *value);
            *value = seen + 1;
            return Visit {
                began,
                ended: tick(),
                weight,
                value: Some(seen),
            };
        }
        let value = lock.read_blocking().unwrap();
        let (began, seen) = (tick(), *value);
        std::thread::yield_now();
        assert_eq!(*value, seen);
        Visit {
            began,
            ended: tick(),
            weight,
            value: None,
        }
    });
    assert!(most(&visits) <= WRITER);
    assert!(is_linear(visits));
}

// pins: K6
#[test]
fn a_semaphore_lets_in_what_it_has_permits_for() {
    const PERMITS: usize = 5;
    let semaphore = Semaphore::new(PERMITS);
    let visits = record(4, |rng| {
        let weight = rng.usize(1..=PERMITS);
        let _permits = semaphore.acquire_blocking(weight).unwrap();
        let began = tick();
        if rng.u8(..) < 16 {
            std::thread::yield_now();
        }
        Visit {
            began,
            ended: tick(),
            weight,
            value: None,
        }
    });
    assert!(most(&visits) <= PERMITS);
    assert_eq!(semaphore.available(), PERMITS);
}
