//! Work-stealing deques side by side: a trait, an implementation for each, and workloads that are
//! generic over the trait, for the row `deque` of `cargo xtask bench`.

mod fork_join;
mod owner;
mod peers;
mod solo;
mod steal;

use crate::contest::{Contest, Run};
use fork_join::{Fib, ForkJoin, Tree};
use owner::{Owner, Prowl};
use peers::{Crossbeam, Ganger, St3};
use solo::{Probe, PushPop};
use std::time::Duration;
use steal::StealHalf;

/// The limit of items of [`Deque::steal_half`]: crossbeam-deque's own bound, for all.
const BATCH: usize = 32;

/// The owner's side of a deque of numbers.
trait Deque: Send + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// The thieves' side. Nothing is tried again: "another thread was faster" counts as nothing
    /// taken. Every steal is given the thief's own deque, because st3 steals by way of it.
    type Stealer: Send + 'static;

    /// Creates an empty deque, with room for `items` if it takes such an argument; a deque of a
    /// fixed size never gets more.
    fn with_room(items: usize) -> Self;

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// If a deque of a fixed size is full.
    fn push(&self, item: u64);

    /// Takes the newest item.
    fn pop(&self) -> Option<u64>;

    /// Makes the next steal cheap, if the deque has a means.
    fn expose(&self) {}

    /// Returns a thief's handle.
    fn stealer(&self) -> Self::Stealer;

    /// Takes the oldest item.
    fn steal(from: &Self::Stealer, own: &Self) -> Option<u64>;

    /// Moves half of the items, rounded up, the oldest, at most [`BATCH`] of them, to the thief's
    /// own deque; says whether there were any.
    fn steal_half(from: &Self::Stealer, own: &Self) -> bool;

    /// Returns whether the deque is empty. Takes nothing.
    fn is_empty(from: &Self::Stealer, own: &Self) -> bool;
}

/// A workload of deques.
trait Workload {
    /// Returns its metrics, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str] {
        &["ns"]
    }

    /// Does the unmeasured part.
    fn prepare<D: Deque>(&self) -> Run;
}

/// Returns the workload with all deques. Its `name` in the tables has its size.
fn contest(name: impl Into<String>, workload: &impl Workload) -> Contest {
    let entrants = vec![
        (Ganger::NAME, workload.prepare::<Ganger>()),
        (Crossbeam::NAME, workload.prepare::<Crossbeam>()),
        (St3::NAME, workload.prepare::<St3>()),
    ];
    Contest::new(name.into(), workload.metrics(), entrants)
}

/// Returns the workloads with all deques, ready to run. `quick` makes them small: enough to see
/// that they work, too little to say how fast.
pub(crate) fn contests(quick: bool) -> Vec<Contest> {
    let mut contests = push_pop(quick);
    contests.extend(steal(quick));
    let attempts = if quick { 1 << 14 } else { 1 << 20 };
    let name = "steal from an empty deque";
    contests.push(contest(name, &Probe { attempts }));
    contests.extend(owner(quick));
    contests.extend(fork_join(quick));
    contests
}

fn push_pop(quick: bool) -> Vec<Contest> {
    let pairs = if quick { 1 << 14 } else { 1 << 21 };
    let of_depth = |depth| {
        let rounds = pairs / depth;
        let name = format!("push+pop, depth {depth}");
        contest(name, &PushPop { depth, rounds })
    };
    [1, 8, 64, 256, 1_024].map(of_depth).into()
}

fn steal(quick: bool) -> Vec<Contest> {
    let rounds = if quick { 5 } else { 300 };
    let of_filler = |(is_far, filler)| {
        let steal = |exposed| StealHalf {
            is_far,
            exposed,
            rounds,
        };
        let name = format!("steal 32 of 64, pushed by {filler}, an item");
        let hidden = steal(false).prepare::<Ganger>();
        contest(name, &steal(true)).and("ganger-deque, not exposed", hidden)
    };
    let fillers = [(false, "the same thread"), (true, "another core")];
    fillers.map(of_filler).into()
}

fn owner(quick: bool) -> Vec<Contest> {
    let time = Duration::from_millis(if quick { 1 } else { 10 });
    let mut contests = Vec::new();
    for depth in [8, 64] {
        for (prowl, what) in [(Prowl::Steal, "stealing"), (Prowl::Look, "looking")] {
            for (thieves, who) in [(1, "1 thief"), (3, "3 thieves")] {
                let owner = Owner {
                    depth,
                    thieves,
                    prowl,
                    time,
                };
                let name = format!("owner, depth {depth}, {who} {what}");
                contests.push(contest(name, &owner));
            }
        }
    }
    contests
}

fn fork_join(quick: bool) -> Vec<Contest> {
    let height = if quick { 12 } else { 20 };
    let tree = |name, work| contest(name, &ForkJoin(Tree::new(height, work)));
    let fib = ForkJoin(Fib(if quick { 18 } else { 32 }));
    vec![
        tree("tree of tasks that do nothing", 0),
        tree("tree of tasks of 6 multiplications", 6),
        contest("fib, a task a call", &fib),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::tests::check;

    #[test]
    fn every_workload_works_with_every_deque() {
        check(contests(true), |contest, metric| {
            // Other programs may take the owner's processor away.
            let may_fail = contest.starts_with("owner");
            (may_fail, ["steals", "stolen of 10^6"].contains(&metric))
        });
    }
}
