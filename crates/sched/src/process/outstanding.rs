//! The yields of a process that have not completed.
//!
//! A completion may come twice: a handler that returned an error had given its completer away. Or
//! it may come too late: the process has been upgraded since. Each yield gets a number that is
//! never used again in the life of the process. A completion counts when its number is still in
//! this set. The set belongs to the worker that runs the process, so that completers need no
//! synchronisation beyond the mailbox.

use crate::base::burst::shrink_after_burst;
use smallvec::SmallVec;
use std::collections::HashSet;

/// From so many on, a hash set takes over from a list.
const MANY: usize = 32;

/// No yield has this number.
const NONE: u64 = 0;

#[derive(Default)]
pub(crate) struct Outstanding {
    /// The number of the newest yield.
    newest: u64,
    /// One of the set, or [`NONE`]: most processes wait for one yield at a time.
    one: u64,
    /// The others. Once there is a list, it stays: a process that had two at once has them again.
    /// A thin pointer.
    others: Option<Box<Others>>,
}

enum Others {
    Few(SmallVec<[u64; 6]>),
    Many(HashSet<u64>),
}

impl Outstanding {
    /// The number of a new yield, which is not in the set. O(1).
    #[inline]
    pub(crate) fn number(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// Takes a yield in, which is not in the set. O(1).
    #[inline]
    pub(crate) fn insert(&mut self, token: u64) {
        if self.one == NONE {
            self.one = token;
        } else {
            self.insert_among_others(token);
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_among_others(&mut self, token: u64) {
        self.others.get_or_insert_default().insert(token);
    }

    /// Takes the yield out; `false` when it has completed before, or was forgotten. O(1).
    #[inline]
    pub(crate) fn finish(&mut self, token: u64) -> bool {
        if self.one == token && token != NONE {
            self.one = NONE;
            return true;
        }
        self.finish_among_others(token)
    }

    #[cold]
    #[inline(never)]
    fn finish_among_others(&mut self, token: u64) -> bool {
        let others = self.others.as_mut();
        others.is_some_and(|others| others.finish(token))
    }

    /// Forgets all yields: their completions are stale from now on.
    pub(crate) fn forget_all(&mut self) {
        self.one = NONE;
        self.others = None;
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.one == NONE && (self.others.as_ref()).is_none_or(|others| others.is_empty())
    }
}

impl Default for Others {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl Others {
    fn insert(&mut self, token: u64) {
        match self {
            Self::Few(few) if few.len() < MANY => few.push(token),
            Self::Few(few) => *self = Self::Many(few.drain(..).chain([token]).collect()),
            Self::Many(many) => {
                many.insert(token);
            }
        }
    }

    fn finish(&mut self, token: u64) -> bool {
        match self {
            Self::Few(few) => {
                let at = few.iter().position(|&it| it == token);
                at.map(|at| few.swap_remove(at)).is_some()
            }
            Self::Many(many) => {
                let found = many.remove(&token);
                if many.is_empty() {
                    *self = Self::default();
                } else {
                    shrink_after_burst(many, 4 * MANY);
                }
                found
            }
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Few(few) => few.is_empty(),
            Self::Many(many) => many.is_empty(),
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Op {
        Begin,
        Finish(usize),
        ForgetAll,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => Just(Op::Begin),
            4 => any::<usize>().prop_map(Op::Finish),
            1 => Just(Op::ForgetAll),
        ]
    }

    proptest! {
        // pins: P6, P7
        #[test]
        fn each_yield_finishes_once(ops in proptest::collection::vec(op(), 0..300)) {
            let mut set = Outstanding::default();
            let mut ever = Vec::new();
            let mut model = HashSet::new();
            for op in ops {
                match op {
                    Op::Begin => {
                        let token = set.number();
                        set.insert(token);
                        prop_assert!(!ever.contains(&token), "a number was used twice");
                        ever.push(token);
                        model.insert(token);
                    }
                    Op::Finish(at) if !ever.is_empty() => {
                        let token = ever[at % ever.len()];
                        prop_assert_eq!(set.finish(token), model.remove(&token));
                    }
                    Op::Finish(_) => {}
                    Op::ForgetAll => { set.forget_all(); model.clear(); }
                }
                prop_assert!(!set.finish(0), "no yield has that number");
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
