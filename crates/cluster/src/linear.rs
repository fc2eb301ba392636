//! Whether a history of calls could have come from calls one after the other.
//!
//! The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", 1993), with
//! the memory of Lowe ("Testing for linearizability", 2017): an operation may be next if no other
//! has returned before it was called; a set of operations and a state that have been tried are not
//! tried again.

use std::collections::HashSet;
use std::hash::Hash;

/// A call of a history.
#[derive(Debug, Clone)]
pub(crate) struct Called<O> {
    pub(crate) op: O,
    /// A number for each call and return, in the order of the times.
    pub(crate) called: u64,
    /// `None`: the outcome is unknown, so the call may take effect at any later time, or never.
    pub(crate) returned: Option<u64>,
}

/// An object by its calls one after the other.
pub(crate) trait Object: Clone + Eq + Hash {
    type Op;

    /// Returns the state after the call, if the call can have its result. Without a known result
    /// any is possible.
    fn after(&self, op: &Self::Op, is_known: bool) -> Option<Self>;
}

/// The calls that have been put in order: all below a place of the history, and some above.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Done {
    below: usize,
    above: Vec<usize>,
}

impl Done {
    fn has(&self, place: usize) -> bool {
        place < self.below || self.above.binary_search(&place).is_ok()
    }

    fn with(&self, place: usize) -> Self {
        let mut done = self.clone();
        let at = done.above.partition_point(|it| *it < place);
        done.above.insert(at, place);
        let joined = (done.above.iter().zip(done.below..)).take_while(|(it, next)| *it == next);
        let joined = joined.count();
        done.above.drain(..joined);
        done.below += joined;
        done
    }
}

/// Returns whether the calls have an order. Time and memory are O(calls × those that are open at
/// once) where the results leave little choice, as the tokens of owners do, and grow exponentially
/// with the choices.
pub(crate) fn is_linearizable<S: Object>(begin: &S, history: &[Called<S::Op>]) -> bool {
    let mut calls: Vec<_> = history.iter().collect();
    calls.sort_by_key(|it| it.called);
    let known = calls.iter().filter(|it| it.returned.is_some()).count();
    let nothing = Done {
        below: 0,
        above: Vec::new(),
    };
    let mut tried = HashSet::new();
    let mut next = vec![(nothing, known, begin.clone())];
    while let Some((done, known, state)) = next.pop() {
        if known == 0 {
            return true;
        }
        let mut first_return = u64::MAX;
        let found = next.len();
        for (place, call) in calls.iter().enumerate().skip(done.below) {
            if call.called > first_return {
                break;
            }
            if done.has(place) {
                continue;
            }
            first_return = first_return.min(call.returned.unwrap_or(u64::MAX));
            let is_known = call.returned.is_some();
            if let Some(after) = state.after(&call.op, is_known) {
                let done = done.with(place);
                if tried.insert((done.clone(), after.clone())) {
                    next.push((done, known - usize::from(is_known), after));
                }
            }
        }
        // The earliest call is tried first.
        next[found..].reverse();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: writes, and reads of a value.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Register(u32);

    #[derive(Debug, Clone)]
    enum Op {
        Write(u32),
        Read(u32),
    }

    impl Object for Register {
        type Op = Op;

        fn after(&self, op: &Op, _: bool) -> Option<Self> {
            match op {
                Op::Write(value) => Some(Self(*value)),
                Op::Read(value) => (*value == self.0).then(|| self.clone()),
            }
        }
    }

    fn call(op: Op, called: u64, returned: impl Into<Option<u64>>) -> Called<Op> {
        let returned = returned.into();
        Called {
            op,
            called,
            returned,
        }
    }

    #[test]
    fn a_register_is_linearizable_or_not() {
        let during = [
            call(Op::Write(1), 1, 6),
            call(Op::Read(1), 2, 3),
            call(Op::Read(1), 4, 5),
        ];
        assert!(is_linearizable(&Register(0), &during));
        let back = [
            call(Op::Write(1), 1, 6),
            call(Op::Read(1), 2, 3),
            call(Op::Read(0), 4, 5),
        ];
        assert!(!is_linearizable(&Register(0), &back));
        let stale = [call(Op::Write(1), 1, 2), call(Op::Read(0), 3, 4)];
        assert!(!is_linearizable(&Register(0), &stale));
        let late = [
            call(Op::Write(1), 1, None),
            call(Op::Read(0), 2, 3),
            call(Op::Read(1), 4, 5),
            call(Op::Read(1), 6, 7),
        ];
        assert!(is_linearizable(&Register(0), &late));
        let twice = [
            call(Op::Write(1), 1, None),
            call(Op::Read(1), 2, 3),
            call(Op::Read(0), 4, 5),
        ];
        assert!(!is_linearizable(&Register(0), &twice));
    }

    /// Returns whether the calls have an order, by a trial of each order of each set of calls.
    fn by_all_orders(state: &Register, open: &[Called<Op>]) -> bool {
        let is_over = open.iter().all(|it| it.returned.is_none());
        is_over
            || (0..open.len()).any(|place| {
                let mut rest = open.to_vec();
                let call = rest.remove(place);
                let is_first = rest
                    .iter()
                    .all(|it| it.returned.is_none_or(|at| at >= call.called));
                let after = state.after(&call.op, call.returned.is_some());
                is_first && after.is_some_and(|after| by_all_orders(&after, &rest))
            })
    }

    #[test]
    fn the_search_finds_what_all_orders_have() {
        let mut counts = [0; 2];
        for seed in 0..4_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let calls = (0..random.usize(1..7)).map(|_| {
                let called = random.u64(0..12);
                let op = match random.bool() {
                    true => Op::Write(random.u32(0..3)),
                    false => Op::Read(random.u32(0..3)),
                };
                let is_known = random.u8(0..4) > 0;
                call(op, called, is_known.then(|| called + random.u64(0..6)))
            });
            let calls: Vec<_> = calls.collect();
            let has_order = by_all_orders(&Register(0), &calls);
            counts[usize::from(has_order)] += 1;
            let found = is_linearizable(&Register(0), &calls);
            assert_eq!(found, has_order, "seed {seed}: {calls:?}");
        }
        assert!(counts.iter().all(|it| *it > 500), "{counts:?}");
    }

    #[test]
    fn a_long_history_is_searched() {
        let round = |number: u64| {
            let (value, at) = (u32::try_from(number).unwrap(), number * 10);
            [
                call(Op::Read(value), at + 12, at + 15),
                call(Op::Write(value), at + 10, at + 14),
                call(Op::Write(value), at + 11, None),
            ]
        };
        let mut history: Vec<_> = (1..2_000).flat_map(round).collect();
        assert!(is_linearizable(&Register(0), &history));
        history.push(call(Op::Read(7), 30_000, 30_001));
        history.push(call(Op::Read(8), 30_002, 30_003));
        history.retain(|it| it.returned.is_some());
        assert!(!is_linearizable(&Register(0), &history));
    }
}
