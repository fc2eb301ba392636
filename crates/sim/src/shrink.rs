//! Making a failing run simpler: delta debugging (Zeller and Hildebrandt, 2002) over the plan of
//! the run.
//!
//! First goes the part that explains most when it is gone: the choices of the test itself (how many
//! processes it starts, how many messages it sends), whole kinds of faults, all moves of a process.
//! Then chunks of moves, halved until they are single moves, and single decisions. Each candidate
//! is run. When it fails in the same way and is simpler, the plan of **its** run is the next plan
//! to begin with, so the plan always has the real decisions.

use crate::plan::Plan;
use std::ops::Range;

/// The cost, in moves, of a decision off the first alternative: a run with fewer switches between
/// actors may be a little longer.
const WEIGHT: u64 = 2;

/// How often moves are made anew, by chance, for lower choices of the test.
const ANEW: u64 = 16;

/// The most choices of an item that goes together with its choices.
const GROUP: usize = 4;

/// Makes a run of a plan: with a seed, of new moves. Gives the real decisions of the run, and its
/// cost, if it fails.
pub(crate) type Run<'a> = dyn FnMut(&Plan, Option<u64>) -> Option<(Plan, Cost)> + 'a;

/// How complicated a run is; between equal runs, the test's choices count.
pub(crate) type Cost = (u64, u64);

/// Returns the complexity of a run of `moves` moves.
pub(crate) fn cost(plan: &Plan, moves: u64) -> Cost {
    let choices = plan.between.iter().map(|it| u64::from(it.chose)).sum();
    (moves + WEIGHT * plan.deviations() as u64, choices)
}

/// Looks for a simpler plan of a run that still fails, in at most `tries` runs. The caller keeps
/// the simplest plan that it has seen.
pub(crate) fn shrink<'a>(plan: Plan, cost: Cost, tries: u64, run: &'a mut Run<'a>) {
    let mut search = Search {
        best: plan,
        cost,
        tries,
        run,
    };
    loop {
        let before = search.cost;
        search.round();
        if search.cost == before || search.tries == 0 {
            return;
        }
    }
}

struct Search<'a> {
    best: Plan,
    cost: Cost,
    tries: u64,
    run: &'a mut Run<'a>,
}

impl Search<'_> {
    fn round(&mut self) {
        self.lower_choices();
        self.drop_choices();
        self.drop_kinds();
        self.drop_processes();
        self.sweep(moves, |plan, chunk| drop(plan.moves.drain(chunk)));
        self.sweep(moves, |plan, chunk| {
            plan.moves[chunk].iter_mut().for_each(|it| it.clear());
        });
        self.sweep(moves, |plan, chunk| {
            plan.moves[chunk].iter_mut().for_each(|it| it.clear_picks());
        });
        self.drop_entries();
    }

    /// Runs the best plan with this change. If the run fails and is simpler, it is the best run.
    fn attempt(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        candidate != self.best && self.attempt_plan(&candidate, None)
    }

    /// Attempts a change of the test's choices, as `attempt` does. Chance makes the moves that do
    /// not fit any more.
    fn attempt_anew(&mut self, change: impl FnOnce(&mut Plan)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        candidate != self.best
            && (self.attempt_plan(&candidate, None)
                || (0..ANEW).any(|seed| self.attempt_plan(&candidate, Some(seed))))
    }

    fn attempt_plan(&mut self, candidate: &Plan, seed: Option<u64>) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        match (self.run)(candidate, seed) {
            Some((plan, cost)) if cost < self.cost => {
                (self.best, self.cost) = (plan, cost);
                true
            }
            _ => false,
        }
    }

    /// Changes chunks of the `count` items: all of them, then halves, then quarters, down to single
    /// items.
    fn sweep(&mut self, count: fn(&Plan) -> usize, change: impl Fn(&mut Plan, Range<usize>)) {
        let mut size = count(&self.best);
        while size > 0 {
            // From the end: the moves after the failure's cause are the most likely to be in vain.
            let mut end = count(&self.best);
            while end > 0 {
                let start = end.saturating_sub(size);
                let is_simpler = self.attempt(|plan| change(plan, start..end));
                end = if is_simpler {
                    start.min(count(&self.best))
                } else {
                    start
                };
            }
            size /= 2;
        }
    }

    /// Lowers the choices of the test: all, halves, and so on; then each for itself.
    fn lower_choices(&mut self) {
        let mut size = self.best.between.len();
        while size > 0 {
            let mut end = self.best.between.len();
            while end > 0 {
                let start = end.saturating_sub(size);
                self.attempt_anew(|plan| {
                    plan.between[start..end]
                        .iter_mut()
                        .for_each(|it| it.chose = 0);
                });
                end = start.min(self.best.between.len());
            }
            size /= 2;
        }
        for place in 0.. {
            let mut low = 0;
            // Zero has been tried.
            while let Some(high) = self.best.between.get(place).map(|it| it.chose)
                && high > low + 1
            {
                let middle = low.midpoint(high);
                if !self.attempt_anew(|plan| plan.between[place].chose = middle) {
                    low = middle;
                }
            }
            if place >= self.best.between.len() {
                break;
            }
        }
    }

    /// Drops choices of an item together with the item. An earlier choice is the number of items.
    fn drop_choices(&mut self) {
        for size in 1..=GROUP {
            let mut start = self.best.between.len().saturating_sub(size);
            while start > 0 {
                for number in 0..start {
                    let there = self.best.between.get(number..start + size);
                    if there.is_none_or(|it| it[0].chose == 0) {
                        continue;
                    }
                    let is_simpler = self.attempt(|plan| {
                        plan.between[number].chose -= 1;
                        plan.between.drain(start..start + size);
                    });
                    if is_simpler {
                        break;
                    }
                }
                start -= 1;
            }
        }
    }

    fn drop_kinds(&mut self) {
        for kind in self.best.kinds() {
            self.attempt(|plan| {
                let moves = plan.moves.iter_mut();
                moves.for_each(|it| it.reset(|_, entry| entry.what == kind));
            });
        }
        self.attempt(|plan| plan.moves.iter_mut().for_each(|it| it.clear()));
    }

    fn drop_processes(&mut self) {
        for pid in self.best.processes() {
            let _ = self.attempt(|plan| plan.moves.retain(|it| !it.is_of(pid)))
                || self.attempt(|plan| {
                    let own = plan.moves.iter_mut().filter(|it| it.is_of(pid));
                    own.for_each(|it| it.clear());
                });
        }
    }

    /// Drops single decisions, from the last moves on.
    fn drop_entries(&mut self) {
        for nth in (0..self.best.moves.len()).rev() {
            let entries = self.best.moves.get(nth).map_or(0, |it| it.entries().len());
            for place in (0..entries).rev() {
                let entry = self
                    .best
                    .moves
                    .get(nth)
                    .and_then(|it| it.entries().get(place));
                let Some(chose) = entry.map(|it| it.chose).filter(|&it| it > 0) else {
                    continue;
                };
                if self.attempt(|plan| plan.moves[nth].reset(|at, _| at == place)) {
                    continue;
                }
                for lower in [chose / 2, chose - 1] {
                    if lower > 0 && self.attempt(|plan| plan.moves[nth].set(place, lower)) {
                        break;
                    }
                }
            }
        }
    }
}

fn moves(plan: &Plan) -> usize {
    plan.moves.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Entry;

    fn entry(what: &'static str, chose: u32, depth: u32) -> Entry {
        Entry { what, chose, depth }
    }

    /// Returns the simplest plan that `fails`, and how often `fails` was called.
    fn shrunk(plan: Plan, tries: u64, fails: impl Fn(&Plan) -> bool) -> (Plan, u64) {
        let of = |plan: &Plan| cost(plan, plan.moves.len() as u64);
        let (mut best, mut runs) = (plan.clone(), 0);
        let first = of(&plan);
        shrink(plan, first, tries, &mut |plan, _| {
            runs += 1;
            if !fails(plan) {
                return None;
            }
            if of(plan) < of(&best) {
                best = plan.clone();
            }
            Some((plan.clone(), of(plan)))
        });
        (best, runs)
    }

    /// Makes a plan of moves with a single decision each.
    fn moves(chose: impl Iterator<Item = u32>) -> Plan {
        let mut plan = Plan::default();
        for (nth, chose) in chose.enumerate() {
            plan.begin_move();
            plan.add_pick(nth % 3, nth % 2 > 0);
            plan.add(true, entry("fault", chose, 0));
            plan.end_move(None);
        }
        plan
    }

    #[test]
    fn what_does_not_matter_goes() {
        let chosen = |plan: &Plan| -> Vec<u32> {
            let entries = plan.moves.iter().flat_map(|it| it.entries());
            entries.map(|it| it.chose).filter(|&it| it > 0).collect()
        };
        let fails = |plan: &Plan| chosen(plan).iter().filter(|&&it| it >= 3).count() >= 2;
        let (simplest, _) = shrunk(moves((0..200).map(|n| n % 7)), 10_000, fails);
        assert_eq!((simplest.moves.len(), simplest.deviations()), (2, 2));
        assert!(fails(&simplest));
    }

    #[test]
    fn the_tries_are_limited() {
        let (kept, runs) = shrunk(moves((0..1_000).map(|_| 1)), 10, |_| false);
        assert_eq!((runs, kept.moves.len()), (10, 1_000));
    }

    /// Shrinks a plan whose first number says how many pairs follow.
    #[test]
    fn what_a_choice_counts_goes_together_with_its_own_choices() {
        let numbers = |plan: &Plan| plan.between.iter().map(|it| it.chose).collect::<Vec<_>>();
        let fails = |plan: &Plan| {
            let numbers = numbers(plan);
            let pairs = numbers[1..].chunks(2).take(numbers[0] as usize);
            pairs.filter(|pair| pair[..] == [3, 4]).count() > 1
        };
        let chosen = [5, 1, 1, 3, 4, 2, 0, 1, 2, 3, 4];
        let plan = Plan {
            between: chosen.map(|chose| entry("test", chose, 0)).to_vec(),
            moves: Vec::new(),
        };
        assert!(fails(&plan));
        let (simplest, _) = shrunk(plan, 10_000, fails);
        assert_eq!(numbers(&simplest), [2, 3, 4, 3, 4]);
    }
}
