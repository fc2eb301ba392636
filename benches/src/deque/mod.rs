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
use steal::{Filled, StealHalf};

/// The limit of items of [`Stealer::steal_half`]: crossbeam-deque's own bound, for all.
const BATCH: usize = 32;

/// The owner's side of a deque of numbers.
trait Deque: Send + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// The thieves' side.
    type Stealer: Stealer<Self>;

    /// Creates an empty deque, with room for `items` if it takes such an argument; a deque that
    /// cannot grow never gets more.
    fn with_room(items: usize) -> Self;

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// If a deque that cannot grow is full.
    fn push(&self, item: u64);

    /// Takes the newest item.
    fn pop(&self) -> Option<u64>;

    /// Makes the next steal cheap, if the deque has a means.
    fn expose(&self) {}

    /// A thief's handle.
    fn stealer(&self) -> Self::Stealer;
}

/// The thieves' side. Nothing is tried again: "another thread was faster" counts as nothing taken.
///
/// Every method is given the thief's own deque, because st3 steals by way of it.
trait Stealer<D>: Send + 'static {
    /// Takes the oldest item.
    fn steal(&self, own: &D) -> Option<u64>;

    /// Moves half of the items, rounded up, the oldest, at most [`BATCH`] of them, to the thief's
    /// own deque; says whether there were any.
    fn steal_half(&self, own: &D) -> bool;

    /// Returns whether the deque is empty. Takes nothing.
    fn is_empty(&self, own: &D) -> bool;
}

/// A workload of deques.
trait Workload {
    /// Returns its name in the tables, with its size.
    fn name(&self) -> String;

    /// Returns its metrics, with units. Of every figure, less is better.
    fn metrics(&self) -> &'static [&'static str];

    /// Does the unmeasured part.
    fn prepare<D: Deque>(&self) -> Run;
}

/// The workload with all deques.
fn contest(workload: &impl Workload) -> Contest {
    let entrants = vec![
        (Ganger::NAME, workload.prepare::<Ganger>()),
        (Crossbeam::NAME, workload.prepare::<Crossbeam>()),
        (St3::NAME, workload.prepare::<St3>()),
    ];
    Contest::new(workload.name(), workload.metrics(), entrants)
}

/// Returns the workloads with all deques, ready to run. `quick` makes them small: enough to see
/// that they work, too little to say how fast.
pub(crate) fn contests(quick: bool) -> Vec<Contest> {
    let mut contests = push_pop(quick);
    contests.extend(steal(quick));
    let attempts = if quick { 1 << 14 } else { 1 << 20 };
    contests.push(contest(&Probe { attempts }));
    contests.extend(owner(quick));
    contests.extend(fork_join(quick));
    contests
}

fn push_pop(quick: bool) -> Vec<Contest> {
    let pairs = if quick { 1 << 14 } else { 1 << 21 };
    let of_depth = |depth| {
        let rounds = pairs / depth;
        contest(&PushPop { depth, rounds })
    };
    [1, 8, 64, 256, 1_024].map(of_depth).into()
}

fn steal(quick: bool) -> Vec<Contest> {
    let rounds = if quick { 5 } else { 300 };
    let of_filled = |filled| {
        let steal = |exposed| StealHalf {
            filled,
            exposed,
            rounds,
        };
        contest(&steal(true)).and(
            "ganger-deque, not exposed",
            steal(false).prepare::<Ganger>(),
        )
    };
    [Filled::Here, Filled::Elsewhere].map(of_filled).into()
}

fn owner(quick: bool) -> Vec<Contest> {
    let time = Duration::from_millis(if quick { 1 } else { 10 });
    let mut contests = Vec::new();
    for depth in [8, 64] {
        let mut add = |thieves, prowl| {
            contests.push(contest(&Owner {
                depth,
                thieves,
                prowl,
                time,
            }));
        };
        for prowl in [Prowl::Steal, Prowl::Look] {
            for thieves in [1, 3] {
                add(thieves, prowl);
            }
        }
    }
    contests
}

fn fork_join(quick: bool) -> Vec<Contest> {
    let height = if quick { 12 } else { 20 };
    let tree = |work| contest(&ForkJoin(Tree::new(height, work)));
    let fib = ForkJoin(Fib(if quick { 18 } else { 32 }));
    vec![tree(0), tree(6), contest(&fib)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_works_with_every_deque() {
        for contest in contests(true) {
            let outcome = contest.run(1);
            for row in &outcome.rows {
                let name = format!("{}, {}", outcome.name, row.name);
                assert_eq!(row.samples.len(), outcome.metrics.len(), "{name}");
                for (metric, samples) in outcome.metrics.iter().zip(&row.samples) {
                    let may_be_zero = ["steals", "stolen of 10^6"].contains(metric);
                    // Other programs may take the owner's processor away.
                    let may_fail = outcome.name.starts_with("owner");
                    let is_sound = |&x: &f64| match x {
                        x if x.is_nan() => may_fail,
                        x => x.is_finite() && (x > 0.0 || may_be_zero && x == 0.0),
                    };
                    assert!(
                        samples.iter().all(is_sound),
                        "{name}, {metric}: {samples:?}"
                    );
                }
            }
        }
    }
}
