//! The graph of waits: parties, and the parties that they wait for.
//!
//! **Protocol.** While a program watches its waits, each wait for a lock, a channel, permits, an
//! answer, room in a mailbox or an end is known, with the parties that can end it
//! (`ganger_wait::watch`). A pass adds the commands that processes wait for, whose parties are not
//! known: so these are in no cycle. A process whose waits are known is not asked for its commands,
//! since the command of a question is the wait for its answer.
//!
//! A party is a thread, or a process with the number of its scheduler. So the waits of two
//! schedulers with the same PIDs are never mixed up.

use super::Observer;
use ganger_proc_api::Pid;
use ganger_sched::{Handle, ProcessLook, ProcessState};
use ganger_wait::watch::{self, Party, Waiting};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::Duration;

/// The most waits in a graph.
const MOST: usize = 10_000;

/// The most heads in a graph.
const MOST_HEADS: usize = 100;

/// Waits of processes and threads at a moment: see [`Observer::waits`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// The waits, the longest first, at most 10,000.
    pub waits: Vec<Wait>,
    /// The cycles: of each the places in `waits`, in the order of the cycle. None of these waits
    /// ends by itself, but for those with a deadline.
    pub cycles: Vec<Vec<usize>>,
    /// The parties with waiters that wait for no party themselves: the most waiters first, at most
    /// 100.
    pub heads: Vec<Head>,
    /// The waits without a place in `waits`.
    pub others: u64,
}

/// A wait of a party for other parties.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The waiter.
    pub waiter: Party,
    /// The kind of the wait: `answer`, `mailbox`, `exit`, the kind of a lock or channel, or the
    /// name of a command's handler.
    pub kind: &'static str,
    /// The parties that can end the wait; none where they are not known.
    pub parties: Vec<Party>,
    /// How long ago it began.
    pub since: Duration,
}

/// A party with waiters, directly or behind other parties, that waits for no party itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The party.
    pub party: Party,
    /// The number of its waiters, directly or behind other parties.
    pub waiters: usize,
    /// The longest of these waits.
    pub longest: Duration,
}

/// A wait for a command: the longest is the greatest.
type Command = (Duration, Reverse<(u64, Pid)>, &'static str);

/// Waits, while a pass collects them.
pub(crate) struct Collected {
    known: Vec<Waiting>,
    now: Duration,
    /// The processes among the waiters of `known`.
    waiters: HashSet<(Pid, u64)>,
    /// The longest, with the shortest of them on top.
    commands: BinaryHeap<Reverse<Command>>,
    others: u64,
}

impl Collected {
    /// Collects all known waits. The pass shows the processes to [`see`](Self::see).
    pub(crate) fn new() -> Self {
        Self::of(watch::waits(), watch::now())
    }

    /// Collects as [`new`](Self::new) does, but for waits among the processes of that scheduler
    /// alone.
    #[cfg(feature = "serve")]
    pub(crate) fn without(scheduler: u64) -> Self {
        let is_its = |it: &Party| matches!(it, Party::Process(_, number) if *number == scheduler);
        let mut known = watch::waits();
        known.retain(|it| !(is_its(&it.party) && it.owners.iter().all(is_its)));
        Self::of(known, watch::now())
    }

    fn of(mut known: Vec<Waiting>, now: Duration) -> Self {
        // The oldest first.
        let others = known.len().saturating_sub(MOST);
        known.truncate(MOST);
        let process = |it: &Waiting| match it.party {
            Party::Process(pid, scheduler) => Some((pid, scheduler)),
            Party::Thread(_) => None,
        };
        Self {
            waiters: known.iter().filter_map(process).collect(),
            known,
            now,
            commands: BinaryHeap::new(),
            others: others as u64,
        }
    }

    /// Sees a process of the scheduler with that number, at a pass.
    pub(crate) fn see(&mut self, scheduler: u64, process: ProcessLook<'_>) {
        let pid = process.pid();
        if process.state() != ProcessState::Blocked || self.waiters.contains(&(pid, scheduler)) {
            return;
        }
        process.each_wait(|wait| {
            if wait.command.is_some() {
                let kind = wait.name.map_or("command", |it| it.as_str());
                self.add((wait.since, Reverse((scheduler, pid)), kind));
            }
        });
    }

    fn add(&mut self, command: Command) {
        if self.commands.len() + self.known.len() < MOST {
            return self.commands.push(Reverse(command));
        }
        self.others += 1;
        if let Some(mut shortest) = self.commands.peek_mut()
            && command > shortest.0
        {
            *shortest = Reverse(command);
        }
    }

    /// Returns the graph. O(waits) for each wait in no cycle, each cycle and each head, at the
    /// worst.
    pub(crate) fn finish(self) -> Waits {
        let cycles = watch::cycle_places(&self.known);
        let heads = heads(&self.known, self.now);
        let known = self.known.into_iter().map(|it| Wait {
            waiter: it.party,
            kind: it.thing.kind,
            since: self.now.saturating_sub(it.since),
            parties: it.owners,
        });
        let command = |Reverse((since, Reverse((scheduler, pid)), kind))| Wait {
            waiter: Party::Process(pid, scheduler),
            kind,
            parties: Vec::new(),
            since,
        };
        let all = known.chain(self.commands.into_iter().map(command));
        let mut all: Vec<_> = all.enumerate().collect();
        all.sort_by_key(|(at, it)| (Reverse(it.since), *at));
        let mut places = vec![0; all.len()];
        for (place, (at, _)) in all.iter().enumerate() {
            places[*at] = place;
        }
        let place = |cycle: Vec<usize>| cycle.into_iter().map(|at| places[at]).collect();
        Waits {
            cycles: cycles.into_iter().map(place).collect(),
            waits: all.into_iter().map(|it| it.1).collect(),
            heads,
            others: self.others,
        }
    }
}

/// Returns the heads of all chains of waits.
fn heads(waits: &[Waiting], now: Duration) -> Vec<Head> {
    let mut behind: HashMap<Party, Vec<usize>> = HashMap::new();
    let mut waits_for_others = HashSet::new();
    let mut order = Vec::new();
    for (at, wait) in waits.iter().enumerate() {
        if !wait.owners.is_empty() {
            waits_for_others.insert(wait.party);
        }
        for &party in &wait.owners {
            let behind = behind.entry(party).or_default();
            if behind.is_empty() {
                order.push(party);
            }
            behind.push(at);
        }
    }
    let free = order
        .into_iter()
        .filter(|it| !waits_for_others.contains(it));
    let head = |party| {
        let (mut seen, mut line) = (HashSet::new(), VecDeque::from([party]));
        let mut longest = Duration::ZERO;
        while let Some(next) = line.pop_front() {
            for &at in behind.get(&next).into_iter().flatten() {
                let wait = &waits[at];
                longest = longest.max(now.saturating_sub(wait.since));
                if seen.insert(wait.party) {
                    line.push_back(wait.party);
                }
            }
        }
        let waiters = seen.len();
        Head {
            party,
            waiters,
            longest,
        }
    };
    let mut heads: Vec<_> = free.map(head).collect();
    heads.sort_by_key(|it| (Reverse(it.waiters), Reverse(it.longest)));
    heads.truncate(MOST_HEADS);
    heads
}

/// Returns the first name of a process, or its type.
pub(crate) fn name_of(scheduler: &Handle, pid: Pid) -> Option<String> {
    scheduler.look_at(pid, |it| {
        let names = it.info().names;
        match names.first() {
            Some(name) => name.to_string(),
            None => it.type_name().to_owned(),
        }
    })
}

impl Observer {
    /// Returns the waits of this scheduler's processes for each other, for threads and for
    /// commands, and all waits of the program that are known: so cycles are found that lead through
    /// another scheduler or through threads.
    ///
    /// Parties are known of waits that began while the program watches its waits: see
    /// [`watch_waits`](Self::watch_waits). Other waits are there by their commands alone.
    ///
    /// O(processes), and memory for 10,000 waits. Blocks meanwhile.
    ///
    /// ```
    /// use ganger_observe::Observer;
    /// use ganger_sched::{Observe, Scheduler};
    ///
    /// let scheduler = Scheduler::builder().observe(Observe::Counts).start()?;
    /// let observer = Observer::of(&scheduler).watch_waits();
    /// assert!(observer.waits().cycles.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn waits(&self) -> Waits {
        let mut collected = Collected::new();
        let number = self.handle.number();
        self.each(|it| collected.see(number, it));
        collected.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;
    use ganger_wait::watch::Thing;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::thread;

    /// Creates a party from a number: of two schedulers with the same PIDs.
    fn party(number: usize) -> Party {
        let host = HostName::new("twin").unwrap();
        let number = number as u64;
        Party::Process(Pid::new(host, number / 2), 7 + number % 2)
    }

    /// Creates a wait as the watch has it: the test begins a wait, and changes it.
    fn waiting(party: Party, owners: Vec<Party>, since: Duration) -> Waiting {
        let _watching = watch::begin(|| None, || Duration::ZERO);
        let _registered = watch::wait(|| Thing::of("mutex", &party));
        let own = thread::current().id();
        let waits = watch::waits().into_iter();
        let mut one = waits.rev().find(|it| it.on == own).unwrap();
        (one.party, one.owners, one.since) = (party, owners, since);
        one
    }

    // pins: V10
    #[test]
    fn cycles_and_heads_are_those_of_a_plain_search() {
        let config = ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let wait = (0..10_usize, vec(0..10_usize, 0..3), 0..50_u64);
        proptest!(config, |(mut edges in vec(wait, 0..14))| {
            edges.sort_by_key(|it| it.2);
            let now = Duration::from_secs(100);
            let known = edges.iter().map(|(at, owners, since)| {
                let owners = owners.iter().map(|it| party(*it)).collect();
                waiting(party(*at), owners, Duration::from_secs(*since))
            });
            let seen = Collected::of(known.collect(), now).finish();
            prop_assert_eq!(seen.waits.len(), edges.len());
            for (wait, (at, owners, since)) in seen.waits.iter().zip(&edges) {
                prop_assert_eq!(wait.waiter, party(*at));
                prop_assert!(wait.parties.iter().copied().eq(owners.iter().map(|it| party(*it))));
                prop_assert_eq!(wait.since, Duration::from_secs(100 - since));
            }
            // Parties that wait for each other, directly or behind other parties.
            let mut behind = [[false; 10]; 10];
            for (at, owners, _) in &edges {
                owners.iter().for_each(|it| behind[*at][*it] = true);
            }
            for middle in 0..10 {
                for from in 0..10 {
                    for to in 0..10 {
                        behind[from][to] |= behind[from][middle] && behind[middle][to];
                    }
                }
            }
            let in_cycle: HashSet<usize> = seen.cycles.iter().flatten().copied().collect();
            for (place, (at, owners, _)) in edges.iter().enumerate() {
                // A path leads back to its party.
                let is_back = |it: &usize| it == at || behind[*it][*at];
                prop_assert_eq!(in_cycle.contains(&place), owners.iter().any(is_back));
            }
            for cycle in &seen.cycles {
                let next = cycle.iter().cycle().skip(1);
                for (&one, &next) in cycle.iter().zip(next) {
                    prop_assert!(seen.waits[one].parties.contains(&seen.waits[next].waiter));
                }
            }
            let mut heads = Vec::new();
            let numbers: [usize; 10] = std::array::from_fn(|it| it);
            for number in numbers {
                let waits = edges.iter().any(|it| it.0 == number && !it.1.is_empty());
                let waiters = (0..10).filter(|it| behind[*it][number]).count();
                if !waits && waiters > 0 {
                    let is_behind = |it: &&(usize, Vec<usize>, u64)| {
                        let leads = |to: usize| to == number || behind[to][number];
                        it.1.iter().any(|to| leads(*to))
                    };
                    let longest = edges.iter().filter(is_behind).map(|it| 100 - it.2).max();
                    heads.push((party(number), waiters, longest.unwrap()));
                }
            }
            let shown = seen.heads.iter().map(|it| (it.party, it.waiters, it.longest.as_secs()));
            let shown: Vec<_> = shown.collect();
            prop_assert!(shown.is_sorted_by(|a, b| (a.1, a.2) >= (b.1, b.2)));
            prop_assert_eq!(shown.len(), heads.len());
            prop_assert!(heads.iter().all(|it| shown.contains(it)), "{:?} {:?}", shown, heads);
        });
    }

    // pins: V10
    #[test]
    fn the_longest_waits_are_kept() {
        let mut collected = Collected::of(Vec::new(), Duration::ZERO);
        let host = HostName::new("many").unwrap();
        let count = MOST as u64 + 500;
        for number in 0..count {
            let since = Duration::from_secs(number * 7_919 % count);
            collected.add((since, Reverse((1, Pid::new(host, number))), "sleep"));
        }
        let seen = collected.finish();
        assert_eq!((seen.waits.len(), seen.others), (MOST, 500));
        let since = seen.waits.iter().map(|it| it.since.as_secs());
        assert!(since.eq((500..count).rev()));
    }
}
