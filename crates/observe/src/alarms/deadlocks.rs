//! Cycles of waits, as values of alarms.
//!
//! **Problem.** A cycle that a look sees may be over at once: a party gives up at its deadline, and
//! tries again. Then the next cycle has the same parties, but other waits.
//!
//! **Protocol.** A cycle is the same as that of an earlier look if its waits are: the same parties
//! wait for the same things since the same moments. Each cycle has a number, and is forgotten at
//! the first look without it. So the levels of the alarms count the looks of a cycle.

use crate::observer::waits::name_of;
use crate::observer::watch_waits;
use ganger_sched::Handle;
use ganger_wait::watch::{self, Party, Thing, Waiting, Watching};
use std::collections::HashMap;
use std::time::Duration;

/// The most waits of a look's search.
const MOST: usize = 10_000;

/// The cycles of a look, by their numbers. Waits are registered until it is dropped.
pub(super) struct Deadlocks {
    cycles: HashMap<u64, Vec<Waiting>>,
    last: u64,
    _watching: Watching,
}

impl Deadlocks {
    pub(super) fn new() -> Self {
        Self {
            cycles: HashMap::new(),
            last: 0,
            _watching: watch_waits(),
        }
    }

    /// Looks for cycles with a process of the scheduler. Gives the counts of their waits.
    pub(super) fn look(&mut self, scheduler: &Handle) -> HashMap<u64, u64> {
        let mut waits = watch::waits();
        waits.retain(|it| !it.needs().is_empty());
        // The oldest stay.
        waits.truncate(MOST);
        let number = scheduler.number();
        let is_own = |it: &Waiting| matches!(it.party, Party::Process(_, its) if its == number);
        let mut known: HashMap<Vec<_>, u64> = HashMap::new();
        for (number, cycle) in &self.cycles {
            known.insert(links(cycle), *number);
        }
        self.cycles.clear();
        for mut cycle in watch::cycles(&waits) {
            if !cycle.iter().any(is_own) {
                continue;
            }
            let first = (0..cycle.len()).min_by_key(|&at| link(&cycle[at]).1);
            cycle.rotate_left(first.unwrap_or_default());
            let number = known.get(&links(&cycle)).copied().unwrap_or_else(|| {
                self.last += 1;
                self.last
            });
            self.cycles.insert(number, cycle);
        }
        let size = |(number, cycle): (&u64, &Vec<Waiting>)| (*number, cycle.len() as u64);
        self.cycles.iter().map(size).collect()
    }

    /// Returns a sentence about the cycle of the last look.
    pub(super) fn text(&self, number: u64, scheduler: &Handle) -> String {
        let own = scheduler.number();
        let name = |party: &Party| match *party {
            Party::Process(pid, number) if number == own => match name_of(scheduler, pid) {
                Some(name) => format!("{pid} ({name})"),
                None => pid.to_string(),
            },
            Party::Process(pid, number) => format!("{pid} of scheduler {number}"),
            Party::Thread(_) => party.to_string(),
        };
        let waits = self.cycles.get(&number).into_iter().flatten();
        let waits: Vec<_> = waits.map(|it| it.text(name)).collect();
        format!("a deadlock: {}", waits.join("; "))
    }
}

/// The identity of a wait, and its place in a cycle.
type Link = (Party, (Duration, usize), &'static str);

fn link(wait: &Waiting) -> Link {
    let Thing { kind, address } = wait.thing;
    (wait.party, (wait.since, address), kind)
}

fn links(cycle: &[Waiting]) -> Vec<Link> {
    cycle.iter().map(link).collect()
}
