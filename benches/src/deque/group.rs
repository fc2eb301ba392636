//! The workloads by name, with their sizes.

use super::contest::{Workload, contest};
use super::{Fib, Filled, ForkJoin, Ganger, Owner, Probe, Prowl, PushPop, StealHalf, Tree};
use crate::contest::{Contest, UnknownGroup, find};
use std::str::FromStr;
use std::time::Duration;

/// Workloads that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// An owner alone.
    PushPop,
    /// A thief that takes half.
    Steal,
    /// A thief that finds nothing.
    Probe,
    /// An owner with thieves around.
    Owner,
    /// Two workers and a tree of tasks.
    ForkJoin,
}

impl Group {
    /// All, in the order of the tables.
    pub const ALL: [Self; 5] = [
        Self::PushPop,
        Self::Steal,
        Self::Probe,
        Self::Owner,
        Self::ForkJoin,
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PushPop => "push_pop",
            Self::Steal => "steal",
            Self::Probe => "probe",
            Self::Owner => "owner",
            Self::ForkJoin => "fork_join",
        }
    }

    /// Returns its workloads with all deques, ready to run. `quick` makes them small: enough to see
    /// that they work, too little to say how fast.
    #[must_use]
    pub fn contests(self, quick: bool) -> Vec<Contest> {
        match self {
            Self::PushPop => push_pop(quick),
            Self::Steal => steal(quick),
            Self::Probe => {
                let attempts = if quick { 1 << 14 } else { 1 << 20 };
                vec![contest(&Probe { attempts })]
            }
            Self::Owner => owner(quick),
            Self::ForkJoin => fork_join(quick),
        }
    }
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
        add(0, Prowl::Elsewhere);
        for prowl in [Prowl::Steal, Prowl::Look, Prowl::Elsewhere] {
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

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        find(name, &Self::ALL, Self::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_their_names() {
        for group in Group::ALL {
            assert_eq!(group.name().parse(), Ok(group));
        }
        let error = "stael".parse::<Group>().unwrap_err();
        assert!(error.to_string().contains("`stael`; there are push_pop, "));
    }

    #[test]
    fn every_workload_works_with_every_deque() {
        for contest in Group::ALL
            .into_iter()
            .flat_map(|group| group.contests(true))
        {
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
