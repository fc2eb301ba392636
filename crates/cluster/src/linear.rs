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

    /// The states after the call, if its result can be that. Without a known result each result
    /// can be.
    fn after(&self, op: &Self::Op, is_known: bool) -> Option<Self>;
}

/// Looks for an order. At most 64 calls.
pub(crate) fn is_linearizable<S: Object>(begin: &S, history: &[Called<S::Op>]) -> bool {
    assert!(history.len() <= 64, "a history has at most 64 calls");
    let known = history.iter().enumerate();
    let known = known.filter(|(_, it)| it.returned.is_some());
    let known = known.fold(0, |mask, (index, _)| mask | 1_u64 << index);
    let mut tried = HashSet::new();
    let mut next = vec![(0_u64, begin.clone())];
    while let Some((done, state)) = next.pop() {
        if done & known == known {
            return true;
        }
        let open = (0..history.len()).filter(|index| done & 1 << index == 0);
        let first_return = open
            .clone()
            .filter_map(|index| history[index].returned)
            .min();
        for index in open {
            let call = &history[index];
            if first_return.is_some_and(|at| at < call.called) {
                continue;
            }
            let after = state.after(&call.op, call.returned.is_some());
            let done = done | 1 << index;
            if let Some(after) = after
                && tried.insert((done, after.clone()))
            {
                next.push((done, after));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: writes, and reads of a value.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Register(u32);

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
}
