//! The yields of a process that have not completed.
//!
//! A completion may come twice (a handler that returned an error had given its completer away) or
//! too late (the process has been upgraded since). Each yield gets a number that is never used again
//! in the life of the process, and a completion counts when its number is still in this set, or it has come
//! before its handler returned and nothing else has happened since (`answer.rs`). The set
//! belongs to the worker that runs the process, so that completers need no synchronisation
//! beyond the mailbox.

use smallvec::SmallVec;
use std::collections::HashSet;

/// From so many on, a hash set takes over from a list.
const MANY: usize = 32;

#[derive(Default)]
pub(crate) struct Outstanding {
    next: u64,
    few: SmallVec<[u64; 2]>,
    #[expect(
        clippy::box_collection,
        reason = "a thin pointer: almost no process needs it"
    )]
    many: Option<Box<HashSet<u64>>>,
}

impl Outstanding {
    /// The number of a new yield, which is not in the set. O(1).
    #[inline]
    pub(crate) fn number(&mut self) -> u64 {
        let token = self.next;
        self.next += 1;
        token
    }

    /// Takes a yield in, which is not in the set. O(1).
    pub(crate) fn insert(&mut self, token: u64) {
        if let Some(many) = &mut self.many {
            many.insert(token);
        } else if self.few.len() < MANY {
            self.few.push(token);
        } else {
            self.many = Some(Box::new(self.few.drain(..).chain([token]).collect()));
        }
    }

    /// Takes the yield out; `false` when it has completed before, or was forgotten. O(1).
    pub(crate) fn finish(&mut self, token: u64) -> bool {
        if let Some(many) = &mut self.many {
            let found = many.remove(&token);
            if many.is_empty() {
                self.many = None;
            }
            return found;
        }
        if *self.few == [token] {
            self.few.clear();
            return true;
        }
        match self.few.iter().position(|&t| t == token) {
            Some(at) => {
                self.few.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Forgets all yields: their completions are stale from now on.
    pub(crate) fn forget_all(&mut self) {
        self.few.clear();
        self.many = None;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty() && self.many.is_none()
    }
}

#[cfg(all(test, not(loom)))]
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
                    Op::Finish(_) => prop_assert!(!set.finish(0)),
                    Op::ForgetAll => { set.forget_all(); model.clear(); }
                }
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
