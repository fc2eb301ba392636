//! A thief of a round: steals in both ways, from the owner and from other thieves.

use super::plan;
use super::tally::Tally;
use super::{Ends, Round};
use fastrand::Rng;
use ganger_deque::{Steal, Worker};
use ganger_soak::Load;
use ganger_soak::chance::{one_in, yield_at_random};

struct Thief<'r, 'a, L> {
    round: &'r Round<'a, L>,
    plan: &'r plan::Thief,
    own: Worker<L>,
    random: Rng,
    /// The newest item that it has taken from the owner's deque. The owner pushes ascending ids, so
    /// its deque always holds ascending ids, and each thief takes ascending ids.
    newest: Option<usize>,
    tally: Tally,
}

pub(super) fn run<'a, L: Load<'a>>(
    round: &Round<'a, L>,
    plan: &plan::Thief,
    own: Worker<L>,
) -> Tally {
    let _ends = Ends {
        round,
        always: false,
    };
    let mut thief = Thief {
        round,
        plan,
        own,
        random: Rng::with_seed(plan.seed),
        newest: None,
        tally: Tally::default(),
    };
    round.start.wait();
    while !round.is_over() {
        if !thief.attempt() {
            yield_at_random(&mut thief.random, round.yields.min(16));
        }
        if plan.keeps {
            thief.tend();
        }
    }
    if !(plan.leave && L::ENTERS_ITSELF) {
        thief.pop(usize::MAX);
    }
    drop(thief.own);
    thief.tally
}

impl<'a, L: Load<'a>> Thief<'_, 'a, L> {
    /// Tries once. Returns whether it got an item.
    fn attempt(&mut self) -> bool {
        let is_detour = self.random.u32(0..8) < self.plan.detours;
        let victims = if is_detour {
            self.round.victims.len()
        } else {
            1
        };
        let victim = self.random.usize(0..victims);
        let success = if self.random.u32(0..8) < self.plan.singles {
            self.steal(victim)
        } else {
            self.steal_half(victim)
        };
        self.tally.steals += u64::from(success);
        success
    }

    fn steal(&mut self, victim: usize) -> bool {
        let Some(item) = self.round.victims[victim].steal().success() else {
            return false;
        };
        if victim == 0 {
            self.check(&item, None);
            self.newest = item.id();
        }
        self.end(item);
        true
    }

    fn steal_half(&mut self, victim: usize) -> bool {
        let limit = self.random.usize(0..=self.plan.limit);
        let victim_is_owner = victim == 0;
        let victim = &self.round.victims[victim];
        let Steal::Success(count) = victim.steal_half_into(&self.own, limit) else {
            return false;
        };
        if count == 0 || count > limit {
            let what = format!("{count} stolen with limit {limit}");
            self.round.ledger.fault(what);
        }
        let pops = if self.plan.keeps {
            self.random.usize(0..=count)
        } else {
            count
        };
        if victim_is_owner {
            self.pop_batch(pops);
        } else {
            self.pop(pops);
        }
        true
    }

    /// Pops at most `count` items of a batch from the owner's deque: newest first.
    fn pop_batch(&mut self, count: usize) {
        let mut popped = None;
        let mut newest = None;
        for _ in 0..count {
            let Some(item) = self.own.pop() else {
                break;
            };
            self.check(&item, popped);
            popped = item.id();
            newest = newest.or(popped);
            self.end(item);
        }
        self.newest = newest.or(self.newest);
    }

    /// Pops at most `count` items, in any order.
    fn pop(&mut self, count: usize) {
        for item in std::iter::from_fn(|| self.own.pop()).take(count) {
            item.end(self.round.ledger);
            self.tally.taken += 1;
        }
    }

    /// Pops, exposes and shrinks its own deque, as its owner.
    fn tend(&mut self) {
        let pops = self.random.usize(0..4);
        self.pop(pops);
        if one_in(&mut self.random, 10) {
            self.own.expose();
        }
        if one_in(&mut self.random, 100) {
            self.own.shrink_to_fit();
        }
    }

    /// Checks the order: an item is newer than all earlier items, and older than the item above it
    /// in the same batch.
    fn check(&self, item: &L, above: Option<usize>) {
        let (id, newest) = (item.id(), self.newest);
        let is_ordered = id > newest && above.is_none_or(|above| id < Some(above));
        if id.is_some() && !is_ordered {
            let what = format!("{id:?} out of order: {newest:?} came before, {above:?} was above");
            self.round.ledger.fault(what);
        }
    }

    fn end(&mut self, item: L) {
        item.end(self.round.ledger);
        self.tally.taken += 1;
    }
}
