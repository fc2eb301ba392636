//! Finds cycles of waits.

use super::{Party, Waiting};
use std::collections::{HashMap, VecDeque};

/// Returns the cycles among `waits`: each wait needs the next waiter, and the last wait needs the
/// first. Each wait in a cycle is in a returned cycle. Each returned cycle is a shortest cycle of
/// one of its waits. A wait for permits of several owners is in no cycle: any of the owners may
/// give back enough.
///
/// O(n) for each wait in no cycle, and for each cycle.
#[must_use]
pub fn cycles(waits: &[Waiting]) -> Vec<Vec<Waiting>> {
    let places = cycle_places(waits).into_iter();
    let cycle = |it: Vec<usize>| it.iter().map(|&at| waits[at].clone()).collect();
    places.map(cycle).collect()
}

/// Finds cycles as [`cycles`] does, and returns the places of the waits in `waits`.
#[must_use]
pub fn cycle_places(waits: &[Waiting]) -> Vec<Vec<usize>> {
    let mut of: HashMap<Party, Vec<usize>> = HashMap::new();
    for (index, wait) in waits.iter().enumerate() {
        of.entry(wait.party).or_default().push(index);
    }
    let mut cycles = Vec::new();
    let mut is_named = vec![false; waits.len()];
    let mut is_free = vec![false; waits.len()];
    for start in 0..waits.len() {
        if is_named[start] {
            continue;
        }
        match shortest(waits, &of, &is_free, start) {
            Some(cycle) => {
                cycle.iter().for_each(|&it| is_named[it] = true);
                cycles.push(cycle);
            }
            None => is_free[start] = true,
        }
    }
    cycles
}

/// Returns a shortest cycle through the wait `start`, except through waits known to be in no cycle.
fn shortest(
    waits: &[Waiting],
    of: &HashMap<Party, Vec<usize>>,
    is_free: &[bool],
    start: usize,
) -> Option<Vec<usize>> {
    let mut before = HashMap::new();
    let mut line = VecDeque::from([start]);
    while let Some(at) = line.pop_front() {
        // An owner may wait for several things at a time.
        let owners = waits[at].needs().iter();
        for &next in owners.filter_map(|it| of.get(it)).flatten() {
            if next == start {
                let back = std::iter::successors(Some(at), |it| before.get(it).copied());
                let mut cycle: Vec<_> = back.collect();
                cycle.reverse();
                return Some(cycle);
            }
            if !is_free[next] && !before.contains_key(&next) {
                before.insert(next, at);
                line.push_back(next);
            }
        }
    }
    None
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::watch::{PERMITS, Thing};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashSet;
    use std::thread;
    use std::time::Duration;

    /// Makes a wait of process `number` for `owners`.
    fn wait(number: u64, owners: &[u64]) -> Waiting {
        let party = |number: &u64| Party::Process(format!("{{main|{number}}}").parse().unwrap(), 1);
        Waiting {
            party: party(&number),
            thing: Thing::of("mutex", &number),
            owners: owners.iter().map(party).collect(),
            since: Duration::ZERO,
            on: thread::current().id(),
            begin: 0,
        }
    }

    fn parties(cycles: &[Vec<Waiting>]) -> Vec<Vec<Party>> {
        let cycles = cycles.iter();
        cycles
            .map(|it| it.iter().map(|wait| wait.party).collect())
            .collect()
    }

    #[test]
    fn a_cycle_is_found_behind_owners_and_waits_that_are_in_none() {
        // Of two readers the second waits for the writer, by the second of its waits.
        let waits = [
            wait(1, &[2, 3]),
            wait(2, &[]),
            wait(3, &[2]),
            wait(3, &[4]),
            wait(4, &[1]),
        ];
        let found = cycles(&waits);
        let of = |index: usize| waits[index].party;
        assert_eq!(parties(&found), [[of(0), of(3), of(4)]]);
    }

    #[test]
    fn one_that_waits_for_itself_is_a_cycle_and_those_behind_it_are_not() {
        let waits = [wait(2, &[1]), wait(1, &[1]), wait(3, &[2])];
        assert_eq!(parties(&cycles(&waits)), [[waits[1].party]]);
    }

    #[test]
    fn permits_of_one_owner_are_in_a_cycle_and_those_of_several_are_not() {
        let permits = |owners: &[u64]| Waiting {
            thing: Thing::of(PERMITS, &7),
            ..wait(1, owners)
        };
        for (owners, count) in [(&[2, 2][..], 1), (&[2, 3], 0), (&[], 0)] {
            let waits = [permits(owners), wait(2, &[1]), wait(3, &[])];
            assert_eq!(cycles(&waits).len(), count, "{owners:?}");
        }
    }

    proptest! {
        /// Compares the cycles with the transitive closure of the waits.
        #[test]
        fn those_that_reach_themselves_are_named(
            edges in vec((0..8_u64, vec(0..8_u64, 0..3)), 0..12),
        ) {
            let waits: Vec<_> = edges.iter().map(|(at, owners)| wait(*at, owners)).collect();
            let count = waits.len();
            let mut reaches: Vec<Vec<bool>> = waits.iter().map(|from| {
                waits.iter().map(|to| from.owners.contains(&to.party)).collect()
            }).collect();
            for middle in 0..count {
                for from in 0..count {
                    for to in 0..count {
                        reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                    }
                }
            }
            let at = |wait: &Waiting| {
                waits.iter().position(|it| it.thing.address == wait.thing.address
                    && it.party == wait.party && it.owners == wait.owners).unwrap()
            };
            let found = cycles(&waits);
            for cycle in &found {
                let next = cycle.iter().cycle().skip(1);
                for (one, next) in cycle.iter().zip(next) {
                    prop_assert!(one.owners.contains(&next.party));
                }
            }
            let named: HashSet<_> = found.iter().flatten().map(at).collect();
            for (index, wait) in waits.iter().enumerate() {
                prop_assert_eq!(named.contains(&at(wait)), reaches[index][index]);
            }
        }
    }
}
