//! An owner alone: as many pushes as the depth, then as many pops.

use super::contest::Workload;
use super::traits::Deque;
use crate::contest::{Run, nanoseconds};
use std::time::Instant;

/// The time of a push and a pop.
#[derive(Clone, Copy, Debug)]
pub struct PushPop {
    /// How many items are in the deque at most.
    pub depth: u64,
    /// How many times the deque is filled and emptied.
    pub rounds: u64,
}

impl Workload for PushPop {
    fn name(&self) -> String {
        format!("push+pop, depth {}", self.depth)
    }

    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

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
