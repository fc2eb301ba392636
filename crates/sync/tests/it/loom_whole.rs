//! Loom tries all orders of accesses to the atomics of `ganger_sync`: the sets of outcomes are
//! whole, and have no outcome against the orderings.

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use ganger_sync::atomic::{AtomicU64, Ordering, fence};
use loom::model::Builder;
use loom::sync::Condvar;
use loom::thread;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Returns the results of a program under all interleavings, without the environment's bounds.
fn outcomes<T, F>(program: F) -> BTreeSet<T>
where
    T: Ord + Clone + Send + 'static,
    F: Fn() -> T + Send + Sync + 'static,
{
    let all = Arc::new(Mutex::new(BTreeSet::new()));
    let mut builder = Builder::new();
    builder.preemption_bound = None;
    builder.max_duration = None;
    let results = Arc::clone(&all);
    builder.check(move || {
        let result = program();
        results.lock().unwrap().insert(result);
    });
    let all = all.lock().unwrap();
    all.clone()
}

fn zeros<const N: usize>() -> Arc<[AtomicU64; N]> {
    Arc::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

/// Runs `this` while another thread runs `other`, and returns the result of `this`.
fn beside<T: 'static>(other: impl FnOnce() + 'static, this: impl FnOnce() -> T) -> T {
    let other = thread::spawn(other);
    let result = this();
    other.join().unwrap();
    result
}

/// Runs the program of loom's issue 392.
#[test]
fn a_store_after_a_load_comes_before_a_load_by_another_thread() {
    let seen = outcomes(|| {
        let both = zeros::<1>();
        let [it] = &*both;
        let other = Arc::clone(&both);
        let load_and_store = move || {
            other[0].load(Relaxed);
            other[0].store(1, Relaxed);
        };
        beside(load_and_store, || it.load(Relaxed))
    });
    assert_eq!(seen, BTreeSet::from([0, 1]));
}

/// Runs the program of loom's issue 166.
#[test]
fn a_load_more_changes_no_outcome() {
    let program = |loads: bool| {
        outcomes(move || {
            let both = zeros::<2>();
            let [key, value] = &*both;
            let other = Arc::clone(&both);
            let writer = move || {
                let [key, value] = &*other;
                key.store(1, SeqCst);
                value.store(1, SeqCst);
                value.store(0, SeqCst);
                if loads {
                    key.load(SeqCst);
                }
                key.store(0, SeqCst);
            };
            beside(writer, || (value.load(SeqCst), key.load(SeqCst)))
        })
    };
    let seen = program(true);
    assert_eq!(seen, program(false));
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

#[test]
fn an_exchange_after_a_load_comes_before_a_load_by_another_thread() {
    let seen = outcomes(|| {
        let both = zeros::<1>();
        let [it] = &*both;
        let other = Arc::clone(&both);
        let add = move || {
            let add = |value| Some(value + 1);
            other[0].fetch_update(Relaxed, Relaxed, add).unwrap();
        };
        beside(add, || (it.load(Relaxed), it.swap(5, Relaxed)))
    });
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 1)]));
}

#[test]
fn a_reader_of_a_sequence_lock_sees_each_moment_of_a_change() {
    let seen = outcomes(|| {
        let both = zeros::<2>();
        let [version, data] = &*both;
        let other = Arc::clone(&both);
        let writer = move || {
            let [version, data] = &*other;
            let before = version.load(Relaxed);
            version.store(before + 1, Relaxed);
            fence(Release);
            data.store(data.load(Relaxed) + 1, Relaxed);
            version.store(before + 2, Release);
        };
        beside(writer, || {
            let before = version.load(Acquire);
            let data = data.load(Relaxed);
            fence(Acquire);
            (before, data, version.load(Relaxed))
        })
    });
    let mut allowed = BTreeSet::new();
    for before in 0..3 {
        for after in before..3 {
            allowed.extend((0..2).map(|data| (before, data, after)));
        }
    }
    // The last store of the version comes after the data, and its first store before.
    allowed.retain(|&(before, data, after)| match data {
        0 => before < 2,
        _ => after > 0,
    });
    assert_eq!(seen, allowed);
}

#[test]
fn marks_of_loads_order_nothing() {
    let seen = outcomes(|| {
        let both = zeros::<2>();
        let [data, flag] = &*both;
        let other = Arc::clone(&both);
        let writer = move || {
            let [data, flag] = &*other;
            data.store(data.load(Relaxed) + 1, Relaxed);
            flag.store(flag.load(Relaxed) + 1, Relaxed);
        };
        beside(writer, || (flag.load(Relaxed), data.load(Relaxed)))
    });
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0), (1, 1)]));
}

/// An access of a random program.
#[derive(Debug, Clone, Copy)]
enum Access {
    Load(usize, Ordering),
    Store(usize, u64, Ordering),
    Swap(usize, u64, Ordering),
    Exchange(usize, u64, u64),
    Fence(Ordering),
}

/// Draws the accesses of two threads from a seed.
fn program(seed: u32) -> [Vec<Access>; 2] {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut below = |limit: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) % limit
    };
    let mut stored = 0;
    [(); 2].map(|()| {
        let accesses = 2 + below(2);
        let access = |_| {
            let (kind, of) = (below(9), below(2) as usize);
            let (weak, current) = (below(2) == 0, u64::from(below(stored + 1)));
            let order = |strong| if weak { Relaxed } else { strong };
            stored += 1;
            let value = u64::from(stored);
            match kind {
                0..=3 => Access::Load(of, order(Acquire)),
                4 | 5 => Access::Store(of, value, order(Release)),
                6 => Access::Swap(of, value, order(AcqRel)),
                7 => Access::Exchange(of, current, value),
                _ => Access::Fence([Acquire, Release, SeqCst][below(3) as usize]),
            }
        };
        (0..accesses).map(access).collect()
    })
}

/// Runs a random program with an atomic type, and returns the values read by its threads. With a
/// `before`, a touch of it precedes each access: then any two accesses conflict.
macro_rules! run {
    ($atomic:ty, $program:expr, $before:expr) => {{
        let program = Arc::new($program);
        let before: fn(&Condvar) = $before;
        outcomes(move || {
            let all = Arc::new([(); 2].map(|()| <$atomic>::new(0)));
            let each = Arc::new(Condvar::new());
            let threads = [0, 1].map(|number| {
                let (program, all) = (Arc::clone(&program), Arc::clone(&all));
                let each = Arc::clone(&each);
                thread::spawn(move || {
                    let mut seen = Vec::new();
                    for access in &program[number] {
                        before(&each);
                        match *access {
                            Access::Load(of, order) => seen.push(Ok(all[of].load(order))),
                            Access::Store(of, value, order) => all[of].store(value, order),
                            Access::Swap(of, value, order) => {
                                seen.push(Ok(all[of].swap(value, order)));
                            }
                            Access::Exchange(of, current, new) => {
                                seen.push(all[of].compare_exchange(current, new, Acquire, Relaxed))
                            }
                            Access::Fence(order) => fence(order),
                        }
                    }
                    seen
                })
            });
            threads.map(|thread| thread.join().unwrap())
        })
    }};
}

#[test]
fn random_programs_have_all_outcomes() {
    let mut skipped = 0;
    for seed in 1..=60 {
        let whole = run!(AtomicU64, program(seed), |_| ());
        let expected = run!(
            loom::sync::atomic::AtomicU64,
            program(seed),
            Condvar::notify_one
        );
        assert_eq!(whole, expected, "seed {seed}: {:?}", program(seed));
        let loom = run!(loom::sync::atomic::AtomicU64, program(seed), |_| ());
        skipped += usize::from(loom != expected);
    }
    assert_ne!(skipped, 0, "loom's own atomics have all outcomes as well");
}
