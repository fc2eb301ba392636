//! The owner of a round: bursts of pushes and pops, with all its other calls in between.

use super::plan::Plan;
use super::tally::Tally;
use super::{Ends, Round};
use fastrand::Rng;
use ganger_deque::Worker;
use ganger_soak::Load;
use ganger_soak::chance::{one_in, yield_at_random};
use std::sync::atomic::Ordering;
use std::thread;

/// For how many yields the owner stands still although no thief takes an item: some seconds on an
/// idle machine. Not a time, because time also passes while other programs run.
pub(super) const MOST_YIELDS: u32 = 5_000_000;

struct Owner<'r, 'a, L> {
    round: &'r Round<'a, L>,
    worker: Worker<L>,
    pushed: usize,
    /// The ids that a pop may meet, newest last. Thieves have taken some of the oldest.
    below: Vec<usize>,
    tally: Tally,
}

pub(super) fn run<'a, L: Load<'a>>(round: &Round<'a, L>, plan: &Plan, worker: Worker<L>) -> Tally {
    let _ends = Ends {
        round,
        always: true,
    };
    let mut owner = Owner {
        round,
        worker,
        pushed: 0,
        below: Vec::new(),
        tally: Tally::default(),
    };
    round.start.wait();
    owner.work(plan);
    if !(plan.leave && L::ENTERS_ITSELF) {
        owner.pop(usize::MAX);
    }
    drop(owner.worker);
    owner.tally
}

impl<'a, L: Load<'a>> Owner<'_, 'a, L> {
    /// Runs until everything has been pushed, or the round is over. Some items may be left.
    fn work(&mut self, plan: &Plan) {
        let mut random = Rng::with_seed(plan.seed);
        while self.pushed < plan.items && !self.round.is_over() {
            let most = plan.items - self.pushed;
            self.push(random.usize(1..=plan.push).min(most));
            if one_in(&mut random, plan.expose) {
                self.worker.expose();
            }
            if one_in(&mut random, plan.steal) {
                self.steal();
            }
            yield_at_random(&mut random, plan.yields);
            if one_in(&mut random, plan.stand) && !self.stand_still() {
                return;
            }
            self.pop(random.usize(0..=plan.pop));
            if one_in(&mut random, plan.shrink) {
                self.worker.shrink_to_fit();
            }
        }
    }

    fn push(&mut self, count: usize) {
        for _ in 0..count {
            self.worker.push(L::new(self.round.ledger, self.pushed));
            self.below.push(self.pushed);
            self.pushed += 1;
        }
        // Ordering: Relaxed, because it is read after the threads have been joined.
        self.round.pushed.store(self.pushed, Ordering::Relaxed);
    }

    /// Pops at most `count` items. Each must be the newest.
    fn pop(&mut self, count: usize) {
        for _ in 0..count {
            let Some(item) = self.worker.pop() else {
                self.below.clear();
                return;
            };
            let (id, newest) = (item.id(), self.below.pop());
            if id.is_some() && id != newest {
                let what = format!("a pop of {id:?} instead of {newest:?}");
                self.round.ledger.fault(what);
            }
            item.end(self.round.ledger);
            self.tally.taken += 1;
        }
    }

    /// Steals from itself. The ids stay in `below`, where no pop meets them.
    fn steal(&mut self) {
        if let Some(item) = self.round.victims[0].steal().success() {
            item.end(self.round.ledger);
            self.tally.taken += 1;
            self.tally.steals += 1;
        }
    }

    /// Does nothing until thieves have taken everything. Returns whether they have.
    fn stand_still(&self) -> bool {
        let (mut length, mut yields) = (self.worker.len(), 0);
        while length > 0 && !self.round.is_over() {
            thread::yield_now();
            yields += 1;
            let now = self.worker.len();
            if now < length {
                (length, yields) = (now, 0);
            } else if yields == MOST_YIELDS {
                let what = format!("thieves do not take what is there: {:?}", self.worker);
                self.round.ledger.fault(what);
                return false;
            }
        }
        true
    }
}
