//! An owner alone, and a thief that finds nothing.

use super::{Deque, Workload};
use crate::contest::{Run, nanoseconds};
use std::hint::black_box;
use std::time::Instant;

/// The time of a push and a pop.
#[derive(Clone, Copy, Debug)]
pub(super) struct PushPop {
    /// How many items are in the deque at most.
    pub(super) depth: u64,
    /// How many times the deque is filled and emptied.
    pub(super) rounds: u64,
}

impl Workload for PushPop {
    fn prepare<D: Deque>(&self) -> Run {
        let Self { depth, rounds } = *self;
        let room = usize::try_from(depth).expect("a depth that fits memory");
        Box::new(move || {
            let deque = D::with_room(room);
            cycle(&deque, depth, 1);
            let start = Instant::now();
            let popped = cycle(&deque, depth, rounds);
            let time = start.elapsed();
            assert_eq!(popped, pushed(depth, rounds));
            vec![nanoseconds(time, depth * rounds)]
        })
    }
}

/// Pushes the numbers from 1 to `depth`, and pops as many, `rounds` times. Returns the sum of the
/// popped numbers.
#[inline(never)]
pub(super) fn cycle<D: Deque>(deque: &D, depth: u64, rounds: u64) -> u64 {
    let mut sum = 0_u64;
    for _ in 0..rounds {
        for item in 1..=depth {
            deque.push(item);
        }
        for _ in 0..depth {
            sum += deque.pop().unwrap_or(0);
        }
    }
    sum
}

/// Returns the sum of the numbers pushed by [`cycle`].
pub(super) fn pushed(depth: u64, rounds: u64) -> u64 {
    rounds * (depth * (depth + 1) / 2)
}

/// The time of an attempt to steal from an empty deque.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// How many attempts.
    pub(super) attempts: u64,
}

impl Workload for Probe {
    fn prepare<D: Deque>(&self) -> Run {
        let Self { attempts } = *self;
        Box::new(move || {
            let (deque, own) = (D::with_room(64), D::with_room(64));
            let stealer = deque.stealer();
            let start = Instant::now();
            let stolen = probe(&stealer, &own, attempts);
            let time = start.elapsed();
            assert_eq!(stolen, 0);
            deque.push(7);
            assert_eq!(probe(&stealer, &own, 1), 7, "it looks at this deque");
            vec![nanoseconds(time, attempts)]
        })
    }
}

/// Returns the sum of the stolen items.
#[inline(never)]
fn probe<D: Deque>(stealer: &D::Stealer, own: &D, attempts: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..attempts {
        sum += D::steal(black_box(stealer), own).unwrap_or(0);
    }
    sum
}
