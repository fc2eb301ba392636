//! The workloads by name, with their sizes.

use super::contest::{Workload, contest};
use super::{
    Blocking, Bounded, Drain, Ganger, Heap, OneThread, Payload, Producers, PushAll, Queued,
};
use crate::contest::{Contest, UnknownGroup, find};
use std::str::FromStr;

/// Workloads that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is allocated.
    Heap,
    /// A thread that sends to itself.
    OneThread,
    /// A consumer for which items wait.
    Drain,
    /// Several producers and a consumer that polls.
    Producers,
    /// Producers that send many items at once.
    PushAll,
    /// A producer and a consumer that sleeps.
    Blocking,
    /// Producers that wait for room.
    Bounded,
}

impl Group {
    /// All, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Heap,
        Self::OneThread,
        Self::Drain,
        Self::Producers,
        Self::PushAll,
        Self::Blocking,
        Self::Bounded,
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::OneThread => "one_thread",
            Self::Drain => "drain",
            Self::Producers => "producers",
            Self::PushAll => "push_all",
            Self::Blocking => "blocking",
            Self::Bounded => "bounded",
        }
    }

    /// Returns its workloads with all queues, ready to run. `quick` makes them small: enough to see
    /// that they work, too little to say how fast.
    #[must_use]
    pub fn contests(self, quick: bool) -> Vec<Contest> {
        if self == Self::Bounded {
            return bounded(if quick { 4_000 } else { 400_000 });
        }
        let mut contests = self.contests_of::<u64>(quick);
        contests.extend(self.contests_of::<[u64; 6]>(quick));
        contests
    }

    fn contests_of<P: Payload>(self, quick: bool) -> Vec<Contest> {
        let (burst, scale) = (100, if quick { 1 } else { 100 });
        match self {
            Self::Heap => {
                // Counts are the same for any number of rounds.
                let heap = Heap { burst, rounds: 100 };
                vec![contest::<P>(&heap).and("ganger-mpsc, Queue", heap.of_queue::<P>())]
            }
            Self::OneThread => {
                let rounds = 50 * scale;
                let workload = OneThread { burst, rounds };
                let queue = workload.prepare::<Queued<P>>();
                vec![contest::<P>(&workload).and("ganger-mpsc, Queue", queue)]
            }
            Self::Drain => vec![drain::<P>(4 * scale)],
            Self::Producers => [2, 4]
                .map(|producers| {
                    let each = 4_000 * scale / producers as u64;
                    let workload = Producers { producers, each };
                    let draining = workload.draining::<P, Ganger<P>>();
                    contest::<P>(&workload).and("ganger-mpsc, drain", draining)
                })
                .into(),
            Self::PushAll => {
                let (producers, each) = (2, 1_600 * scale);
                vec![PushAll(Producers { producers, each }).contest::<P>()]
            }
            Self::Blocking => {
                let messages = 1_500 * scale;
                vec![Blocking { messages }.contest::<P>()]
            }
            // Its strings are no payload.
            Self::Bounded => Vec::new(),
        }
    }
}

/// As many strings through channels of every size.
fn bounded(strings: usize) -> Vec<Contest> {
    let sizes = [16, 1_024, 16_384].map(|capacity| {
        [1, 2, 8].map(|producers| Bounded {
            capacity,
            producers,
            each: strings / producers,
        })
    });
    sizes.into_iter().flatten().map(Bounded::contest).collect()
}

/// Ganger's own way is to drain; it can receive as its peers do, too.
fn drain<P: Payload>(rounds: u64) -> Contest {
    let workload = Drain { rounds };
    contest::<P>(&workload)
        .and("ganger-mpsc, drain", workload.at_once::<P, Ganger<P>>())
        .and("ganger-mpsc, drain alone", workload.alone::<P, Ganger<P>>())
        .and("Queue, drain", workload.at_once::<P, Queued<P>>())
        .and("Queue, drain alone", workload.alone::<P, Queued<P>>())
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
        let error = "drian".parse::<Group>().unwrap_err();
        assert!(error.to_string().contains("`drian`; there are heap, "));
    }

    #[test]
    fn every_workload_works_with_every_queue() {
        for contest in Group::ALL
            .into_iter()
            .flat_map(|group| group.contests(true))
        {
            let outcome = contest.run(1);
            for row in &outcome.rows {
                let name = format!("{}, {}", outcome.name, row.name);
                assert_eq!(row.samples.len(), outcome.metrics.len(), "{name}");
                for (metric, samples) in outcome.metrics.iter().zip(&row.samples) {
                    let may_be_zero = metric.ends_with("million messages");
                    let is_sound = |&x: &f64| x.is_finite() && (x > 0.0 || may_be_zero && x == 0.0);
                    assert!(
                        samples.iter().all(is_sound),
                        "{name}, {metric}: {samples:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn in_steady_state_ganger_does_not_allocate_and_others_do() {
        for contest in Group::Heap.contests(true) {
            let outcome = contest.run(1);
            let steady = |name: &str| {
                let row = outcome.rows.iter().find(|row| row.name == name);
                *row.unwrap().samples.last().unwrap().last().unwrap()
            };
            assert!(steady("ganger-mpsc") < 1e-9);
            assert!(steady("ganger-mpsc, Queue") < 1e-9);
            assert!(steady("std") > 1e4, "one for 31 messages");
        }
    }
}
