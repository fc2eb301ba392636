//! Two deques compared with `VecDeque`s, on one thread: every operation in any order.
#![cfg(not(ganger_loom))]

use ganger_deque::{Steal, Worker};
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Push(u8),
    Pop(u8),
    Expose,
    Steal,
    StealHalf(usize),
    StealHalfAndPop(usize),
    StealHalfFromItself,
    Shrink,
    Length,
}

/// A deque and its expected items, oldest first.
struct Pair {
    worker: Worker<u32>,
    model: VecDeque<u32>,
    stolen: u32,
    /// The number of the first item.
    first: u32,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let worker = Worker::with_capacity(capacity);
        Self {
            first: worker.stealer().position().0,
            worker,
            model: VecDeque::new(),
            stolen: 0,
        }
    }

    fn check_length(&self) {
        let length = self.model.len();
        assert_eq!(self.worker.len(), length);
        assert_eq!(self.worker.stealer().len(), length);
        assert_eq!(self.worker.is_empty(), length == 0);
        assert_eq!(self.worker.stealer().is_empty(), length == 0);
        assert!(self.worker.capacity() >= length);
        let (oldest, count) = self.worker.stealer().position();
        assert_eq!(count, length);
        let first = oldest.wrapping_sub(self.stolen);
        assert_eq!(first, self.first, "moved by something else than thieves");
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (1..40_u8).prop_map(Operation::Push),
        4 => (1..40_u8).prop_map(Operation::Pop),
        1 => Just(Operation::Expose),
        3 => Just(Operation::Steal),
        3 => (0..50_usize).prop_map(Operation::StealHalf),
        3 => (0..50_usize).prop_map(Operation::StealHalfAndPop),
        1 => Just(Operation::StealHalfFromItself),
        1 => Just(Operation::Shrink),
        1 => Just(Operation::Length),
    ]
}

/// Carries `operation` out on both sides of `this`. Half of the items go to `other`.
fn apply(operation: Operation, this: &mut Pair, other: &mut Pair, next: &mut u32) {
    match operation {
        Operation::Push(count) => {
            for _ in 0..count {
                this.worker.push(*next);
                this.model.push_back(*next);
                *next += 1;
            }
        }
        Operation::Pop(count) => {
            for _ in 0..count {
                assert_eq!(this.worker.pop(), this.model.pop_back());
            }
        }
        Operation::Expose => this.worker.expose(),
        Operation::Steal => {
            let expected = this.model.pop_front().map_or(Steal::Empty, Steal::Success);
            this.stolen += u32::from(expected.is_success());
            assert_eq!(this.worker.stealer().steal(), expected);
        }
        Operation::StealHalf(limit) => {
            let half = this.model.len().div_ceil(2);
            match this.worker.stealer().steal_half_into(&other.worker, limit) {
                Steal::Success(count) => {
                    assert!((1..=half.min(limit)).contains(&count));
                    this.stolen += u32::try_from(count).unwrap();
                    other.model.extend(this.model.drain(..count));
                }
                Steal::Empty => assert!(limit == 0 || this.model.is_empty()),
                Steal::Retry => panic!("there is no other thread"),
            }
        }
        Operation::StealHalfAndPop(limit) => {
            let half = this.model.len().div_ceil(2);
            let before = other.worker.len();
            let stealer = this.worker.stealer();
            match stealer.steal_half_and_pop(&other.worker, limit) {
                Steal::Success(oldest) => {
                    let count = other.worker.len() - before + 1;
                    assert!((1..=half.min(limit)).contains(&count));
                    this.stolen += u32::try_from(count).unwrap();
                    let mut stolen = this.model.drain(..count);
                    assert_eq!(stolen.next(), Some(oldest));
                    other.model.extend(stolen);
                }
                Steal::Empty => assert!(limit == 0 || this.model.is_empty()),
                Steal::Retry => panic!("there is no other thread"),
            }
        }
        Operation::StealHalfFromItself => {
            let stealer = this.worker.stealer();
            assert_eq!(stealer.steal_half_into(&this.worker, 9), Steal::Empty);
            assert_eq!(stealer.steal_half_and_pop(&this.worker, 9), Steal::Empty);
        }
        Operation::Shrink => {
            this.worker.shrink_to_fit();
            let most = this.model.len().max(16).next_power_of_two();
            assert!(this.worker.capacity() <= most);
        }
        Operation::Length => this.check_length(),
    }
}

proptest! {
    #[test]
    fn it_behaves_as_two_vec_deques(
        capacities in (0..20_usize, 0..20_usize),
        operations in prop::collection::vec((any::<bool>(), operation()), 0..200),
    ) {
        let mut left = Pair::new(capacities.0);
        let mut right = Pair::new(capacities.1);
        let mut next = 0;
        for (on_left, operation) in operations {
            if on_left {
                apply(operation, &mut left, &mut right, &mut next);
            } else {
                apply(operation, &mut right, &mut left, &mut next);
            }
        }
        for mut pair in [left, right] {
            pair.check_length();
            while let Some(item) = pair.worker.pop() {
                prop_assert_eq!(Some(item), pair.model.pop_back());
            }
            prop_assert!(pair.model.is_empty());
        }
    }
}
