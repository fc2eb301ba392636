//! Entries that wait for a peer's answer, as long as its session lasts.

use super::askers::Asker;
use super::requests::Request;
use ganger_proc_api::{Completer, EndWatch, ExitCause, Pid, Reply};
use ganger_sched::crossing::{FarReply, Outgoing};
use ganger_sched::{ExitAction, ExitKey, RemoteLink, Watcher};
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A table with fewer entries is not swept.
const LEAST: usize = 64;

/// The most watched processes of a peer.
const MAX_WATCHES: usize = 1 << 20;

/// The watched processes of the peer. An entry leaves once: by the end, by the watcher, by a sweep
/// when the watcher has ended, or with the session.
#[derive(Default)]
pub(crate) struct Watches {
    last: u64,
    /// The number of entries behind the last sweep.
    kept: usize,
    /// How many entries were refused since the last sweep.
    refused: usize,
    by_number: HashMap<u64, (Pid, Box<dyn ExitAction>)>,
    by_key: HashMap<(Pid, ExitKey), Vec<u64>>,
}

impl Watches {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns whether a further entry may be made. A refused entry is counted.
    pub(crate) fn has_room(&mut self) -> bool {
        let has_room = self.by_number.len() < MAX_WATCHES;
        self.refused += usize::from(!has_room);
        has_room
    }

    /// Inserts an entry, and returns its number.
    pub(crate) fn insert(&mut self, process: Pid, action: Box<dyn ExitAction>) -> u64 {
        self.last += 1;
        if let Some(key) = action.key() {
            let numbers = self.by_key.entry((process, key)).or_default();
            numbers.push(self.last);
        }
        self.by_number.insert(self.last, (process, action));
        self.last
    }

    /// Returns a number for an entry whose process is not known yet.
    pub(crate) fn reserve(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Makes the entry of a reserved number.
    pub(crate) fn enter(&mut self, number: u64, process: Pid, action: Box<dyn ExitAction>) {
        self.by_number.insert(number, (process, action));
    }

    /// Returns the watcher of the entry.
    pub(crate) fn watcher(&self, number: u64) -> Option<Pid> {
        match self.by_number.get(&number)?.1.watcher()? {
            Watcher::Process(pid) => Some(pid.with_node(None)),
            _ => None,
        }
    }

    /// Takes the entry whose process has ended.
    pub(crate) fn remove(&mut self, number: u64) -> Option<(Pid, Box<dyn ExitAction>)> {
        let (process, action) = self.by_number.remove(&number)?;
        if let Some(key) = action.key()
            && let Some(numbers) = self.by_key.get_mut(&(process, key))
        {
            numbers.retain(|it| *it != number);
            if numbers.is_empty() {
                self.by_key.remove(&(process, key));
            }
        }
        Some((process, action))
    }

    /// Removes and returns the entries that their watcher takes back.
    pub(crate) fn remove_keyed(
        &mut self,
        process: Pid,
        key: ExitKey,
    ) -> Vec<(u64, Box<dyn ExitAction>)> {
        let numbers = self.by_key.remove(&(process, key)).unwrap_or_default();
        let taken = numbers.into_iter().filter_map(|number| {
            let (_, action) = self.by_number.remove(&number)?;
            Some((number, action))
        });
        taken.collect()
    }

    /// Takes the entries whose watcher has ended. Does so when the entries, with the refused ones,
    /// are twice as many as the last sweep has left: constant time for each entry, in the long run.
    pub(crate) fn sweep(&mut self) -> Vec<(u64, Box<dyn ExitAction>)> {
        if self.by_number.len() + self.refused < 2 * self.kept.max(LEAST) {
            return Vec::new();
        }
        self.refused = 0;
        let is_over = |(number, (_, action)): (&u64, &(Pid, Box<dyn ExitAction>))| {
            action.is_over().then_some(*number)
        };
        let over: Vec<_> = self.by_number.iter().filter_map(is_over).collect();
        let taken = over.into_iter().filter_map(|number| {
            let (_, action) = self.remove(number)?;
            Some((number, action))
        });
        let taken = taken.collect();
        self.kept = self.by_number.len();
        taken
    }

    /// Takes all, in the order of their requests.
    pub(crate) fn take_all(&mut self) -> Vec<(Pid, Box<dyn ExitAction>)> {
        self.by_key = HashMap::new();
        self.kept = 0;
        let mut all: Vec<_> = std::mem::take(&mut self.by_number).into_iter().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, watch)| watch).collect()
    }
}

/// Questions to the peer itself, each with what its answer needs.
pub(crate) struct Questions<T> {
    last: u64,
    open: BTreeMap<u64, T>,
}

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self {
            last: 0,
            open: BTreeMap::new(),
        }
    }
}

impl<T> Questions<T> {
    pub(crate) fn insert(&mut self, question: T) -> u64 {
        self.last += 1;
        self.open.insert(self.last, question);
        self.last
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        self.open.remove(&number)
    }

    pub(crate) fn take_all(&mut self) -> Vec<T> {
        let open = std::mem::take(&mut self.open);
        open.into_values().collect()
    }
}

/// A start at the peer, without an answer yet.
pub(crate) struct Spawn {
    pub(crate) reply: Reply<Pid>,
    /// A monitor, with its number.
    pub(crate) watch: Option<(u64, Box<dyn ExitAction>)>,
    pub(crate) link: Option<Asker>,
}

/// The numbers of the replies that leave for a peer.
#[derive(Debug, Default)]
pub(crate) struct Asking(AtomicU64);

impl Outgoing for Asking {
    fn reply(&self) -> Option<u64> {
        // Ordering: Relaxed: the numbers alone count.
        Some(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// A question whose answer is out.
pub(crate) struct Asked {
    pub(crate) completer: Completer,
    /// Tells when the answer is unwanted.
    _watch: Option<EndWatch>,
}

impl Asked {
    pub(crate) fn new(completer: Completer, watch: Option<EndWatch>) -> Self {
        let _watch = watch;
        Self { completer, _watch }
    }
}

/// The questions whose answers are out, in both directions.
#[derive(Default)]
pub(crate) struct Open {
    pub(crate) asked: BTreeMap<u64, Asked>,
    pub(crate) answering: BTreeMap<u64, FarReply>,
    /// Unwanted questions without an entry: the word on the control lane has overtaken the message,
    /// or the answer is on its way.
    pub(crate) early: HashSet<u64>,
}

/// All tables of a session.
#[derive(Default)]
pub(crate) struct Tables {
    pub(crate) watches: Watches,
    /// The own processes that the peer watches, by its numbers.
    pub(crate) watched: BTreeMap<u64, Pid>,
    /// As this side sees them.
    pub(crate) links: HashSet<RemoteLink>,
    pub(crate) names: Questions<Reply<Option<Pid>>>,
    pub(crate) spawns: Questions<Spawn>,
    /// The causes of processes that have ended before their start was answered, by the numbers of
    /// their monitors.
    pub(crate) early: HashMap<u64, ExitCause>,
    /// The links of processes whose start has not been answered, by their numbers, each with what
    /// is to be sent behind the answer.
    pub(crate) starting: HashMap<u64, Option<Request>>,
    pub(crate) open: Open,
}

/// The entries that waited for the peer at the end of the session.
#[derive(Default)]
pub(crate) struct Left {
    pub(crate) watches: Vec<(Pid, Box<dyn ExitAction>)>,
    pub(crate) watched: BTreeMap<u64, Pid>,
    pub(crate) links: Vec<RemoteLink>,
    pub(crate) names: Vec<Reply<Option<Pid>>>,
    pub(crate) spawns: Vec<Spawn>,
    pub(crate) open: Open,
}

/// The most questions to a peer whose answers are out.
pub(crate) const MAX_ASKED: usize = 1 << 16;

impl Tables {
    /// Returns the number of entries of all tables.
    pub(crate) fn len(&self) -> usize {
        let Open {
            asked,
            answering,
            early,
        } = &self.open;
        let open = asked.len() + answering.len() + early.len();
        let asked = self.names.open.len() + self.spawns.open.len() + self.early.len();
        let watched = self.watches.by_number.len() + self.watches.by_key.len() + self.watched.len();
        watched + self.links.len() + asked + open
    }

    /// Returns whether this number of further questions may be asked.
    pub(crate) fn may_ask(&self, more: usize) -> bool {
        let open = self.open.asked.len() + self.names.open.len() + self.spawns.open.len();
        open + more <= MAX_ASKED
    }

    /// Returns whether the peer may watch a further process. The word for the end of a watch may be
    /// under way, so the peer may have more than its own bound says.
    pub(crate) fn may_watch(&self) -> bool {
        self.watched.len() < 2 * MAX_WATCHES
    }

    /// Returns whether nothing waits for the peer.
    pub(crate) fn is_empty(&self) -> bool {
        self.watches.by_number.is_empty()
            && self.watched.is_empty()
            && self.links.is_empty()
            && self.names.open.is_empty()
            && self.spawns.open.is_empty()
            && self.open.asked.is_empty()
            && self.open.answering.is_empty()
    }

    /// Leaves the tables empty. Numbers are not used again. All is in the order of its numbers, so
    /// that simulations repeat.
    pub(crate) fn take_all(&mut self) -> Left {
        self.early = HashMap::new();
        self.starting = HashMap::new();
        let mut links: Vec<_> = std::mem::take(&mut self.links).into_iter().collect();
        links.sort_unstable_by_key(|link| link.number);
        Left {
            watches: self.watches.take_all(),
            watched: std::mem::take(&mut self.watched),
            links,
            names: self.names.take_all(),
            spawns: self.spawns.take_all(),
            open: std::mem::take(&mut self.open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Keyed(u64);

    impl ExitAction for Keyed {
        fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {}

        fn key(&self) -> Option<ExitKey> {
            Some(ExitKey::new(1, self.0))
        }
    }

    // pins: B13
    #[test]
    fn a_watch_leaves_once_whichever_comes_first() {
        let mut watches = Watches::default();
        let pid: Pid = "{beta@main|1}".parse().unwrap();
        let numbers = [7, 7, 8].map(|key| watches.insert(pid, Box::new(Keyed(key))));
        assert!(watches.remove(numbers[0]).is_some());
        assert!(watches.remove(numbers[0]).is_none());
        let taken = watches.remove_keyed(pid, ExitKey::new(1, 7));
        assert_eq!(
            taken.iter().map(|(it, _)| *it).collect::<Vec<_>>(),
            [numbers[1]]
        );
        assert!(watches.remove_keyed(pid, ExitKey::new(1, 7)).is_empty());
        assert_eq!(watches.take_all().len(), 1);
        assert!(watches.by_number.is_empty() && watches.by_key.is_empty());
    }

    // pins: B13
    #[test]
    fn watches_of_both_sides_have_a_bound() {
        let pid: Pid = "{beta@main|1}".parse().unwrap();
        let mut tables = Tables::default();
        for _ in 0..MAX_WATCHES {
            assert!(tables.watches.has_room());
            tables.watches.insert(pid, Box::new(Over));
        }
        assert!(!tables.watches.has_room());
        assert!(
            !tables.watches.sweep().is_empty(),
            "the watchers have ended"
        );
        assert!(tables.watches.has_room());
        // More than the half is alive, so the table can't double.
        let mut tables = Tables::default();
        let alive = MAX_WATCHES as u64 / 5 * 3;
        for key in 0..alive {
            tables.watches.insert(pid, Box::new(Keyed(key)));
        }
        tables.watches.sweep();
        while tables.watches.has_room() {
            tables.watches.insert(pid, Box::new(Over));
        }
        while tables.watches.sweep().is_empty() {
            assert!(!tables.watches.has_room());
        }
        assert!(tables.watches.has_room());
        tables.watched = (1..2 * MAX_WATCHES as u64).map(|it| (it, pid)).collect();
        assert!(tables.may_watch());
        tables.watched.insert(0, pid);
        assert!(!tables.may_watch());
    }

    /// A monitor whose watcher has ended.
    struct Over;

    impl ExitAction for Over {
        fn tell(self: Box<Self>, _: Pid, _: &ExitCause) {}

        fn is_over(&self) -> bool {
            true
        }
    }

    // pins: B13
    #[test]
    fn a_table_that_has_doubled_loses_what_is_over() {
        let mut watches = Watches::default();
        let pid: Pid = "{beta@main|1}".parse().unwrap();
        let kept: Vec<_> = (0..100)
            .map(|key| watches.insert(pid, Box::new(Keyed(key))))
            .collect();
        let mut taken = 0;
        for _ in 0..10_000 {
            watches.insert(pid, Box::new(Over));
            taken += watches.sweep().len();
            assert!(watches.by_number.len() <= 2 * (kept.len() + 1));
        }
        assert!(taken > 9_000, "{taken}");
        assert!(kept.iter().all(|it| watches.remove(*it).is_some()));
    }
}
