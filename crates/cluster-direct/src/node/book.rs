//! The addresses that a node knows, and when it dials each.
//!
//! 1. Seeds come from the discovery and stay as long as the discovery says them.
//! 2. A peer says its own address in its greeting: that beats all hearsay.
//! 3. Peers say addresses of third nodes. Such an address is a hint where to dial, no more: the
//!    node there proves its name, and a list of a peer is short.
//!
//! Of a pair the node with the lower name dials first. The other waits a second: perhaps it can
//! reach the first, and not the reverse. An address without success is dialled less and less
//! often. The book forgets hearsay without success.

use fastrand::Rng;
use ganger_cluster::NodeId;
use ganger_proc_api::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The most addresses.
const MOST: usize = 1024;
/// The first pause after a failure, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];
/// How long the higher name waits for the lower.
const COURTESY: Duration = Duration::from_secs(1);
/// Hearsay with so many failures is forgotten: after about two minutes.
const MOST_FAILURES: u32 = 30;
/// For how long an address is taken for this node's own. Others may say so without a proof, and an
/// address that balances load leads to this node by chance.
const OWN: Duration = Duration::from_secs(60);

/// The source of an address. A later is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Hearsay,
    Own,
    Seed,
}

#[derive(Debug)]
struct Entry {
    origin: Origin,
    /// Of the node there, if known.
    name: Option<NodeId>,
    due: Instant,
    failures: u32,
    is_dialled: bool,
}

/// The addresses.
#[derive(Debug)]
pub(crate) struct Book {
    me: NodeId,
    entries: BTreeMap<SocketAddr, Entry>,
    /// Addresses of this node itself.
    own: BTreeMap<SocketAddr, Instant>,
    random: Rng,
}

impl Book {
    pub(crate) fn new(me: NodeId, seed: u64) -> Self {
        Self {
            me,
            entries: BTreeMap::new(),
            own: BTreeMap::new(),
            random: Rng::with_seed(seed),
        }
    }

    /// Takes the seeds of the discovery. Earlier seeds that it does not say any more are hearsay.
    pub(crate) fn seeds(&mut self, seeds: &[SocketAddr], now: Instant) {
        for (address, entry) in &mut self.entries {
            if entry.origin == Origin::Seed && !seeds.contains(address) {
                entry.origin = Origin::Hearsay;
            }
        }
        for &address in seeds {
            self.learn(address, None, Origin::Seed, now);
        }
    }

    /// Learns where a node is.
    pub(crate) fn learn(
        &mut self,
        address: SocketAddr,
        name: Option<&NodeId>,
        origin: Origin,
        now: Instant,
    ) {
        self.own.retain(|_, until| *until > now);
        if name == Some(&self.me) || self.own.contains_key(&address) {
            return;
        }
        if origin == Origin::Own {
            // The node has moved.
            let stays = |at: &SocketAddr, entry: &Entry| {
                *at == address || entry.origin > Origin::Own || entry.name.as_ref() != name
            };
            self.entries.retain(|at, entry| stays(at, entry));
        }
        let knows_better = |entry: &Entry| entry.origin > origin && entry.name.as_ref() == name;
        if origin == Origin::Hearsay && self.entries.values().any(knows_better) {
            return;
        }
        if let Some(entry) = self.entries.get_mut(&address) {
            // Hearsay gives no name: a lie about an address would keep this node from dialling.
            if origin == Origin::Own {
                entry.name = name.cloned();
            }
            entry.origin = entry.origin.max(origin);
            return;
        }
        if self.entries.len() >= MOST && !self.make_room(origin) {
            return;
        }
        let waits = name.is_some_and(|name| *name < self.me);
        let due = if waits { now + COURTESY } else { now };
        let entry = Entry {
            origin,
            name: name.cloned(),
            due,
            failures: 0,
            is_dialled: false,
        };
        self.entries.insert(address, entry);
    }

    /// Forgets the address with the most failures, hearsay first. Seeds stay.
    fn make_room(&mut self, origin: Origin) -> bool {
        if origin == Origin::Hearsay {
            return false;
        }
        let others = self.entries.iter().filter(|(_, it)| {
            it.origin < Origin::Seed
                && !it.is_dialled
                && (it.origin < origin || it.failures > MOST_FAILURES)
        });
        let worst = others.max_by_key(|(_, it)| (it.origin == Origin::Hearsay, it.failures));
        let worst = worst.map(|(address, _)| *address);
        worst.is_some_and(|it| self.entries.remove(&it).is_some())
    }

    /// The addresses to be dialled now. Each is under way then, until [`Book::dialled`].
    pub(crate) fn due(
        &mut self,
        now: Instant,
        is_peer: impl Fn(&NodeId) -> bool,
    ) -> Vec<SocketAddr> {
        let mut due = Vec::new();
        for (address, entry) in &mut self.entries {
            let is_wanted = entry.is_wanted(&is_peer);
            if is_wanted && entry.due <= now {
                entry.is_dialled = true;
                due.push(*address);
            }
        }
        due
    }

    /// When [`Book::due`] has something next.
    pub(crate) fn next(&self, is_peer: impl Fn(&NodeId) -> bool) -> Option<Instant> {
        let wanted = self.entries.values().filter(|it| it.is_wanted(&is_peer));
        wanted.map(|it| it.due).min()
    }

    /// A dial has ended: with the name of the node there, unless it has failed.
    pub(crate) fn dialled(&mut self, address: SocketAddr, name: Option<&NodeId>, now: Instant) {
        let Some(entry) = self.entries.get_mut(&address) else {
            return;
        };
        entry.is_dialled = false;
        if let Some(name) = name {
            entry.name = Some(name.clone());
            entry.failures = 0;
            // A connection that breaks at once is not dialled at once.
            entry.due = now + PAUSES[0];
            return;
        }
        entry.failures = entry.failures.saturating_add(1);
        let pause = PAUSES[0]
            .saturating_mul(1 << entry.failures.min(10))
            .min(PAUSES[1]);
        let half = pause / 2;
        entry.due = now + half + half.mul_f64(self.random.f64());
        if entry.origin == Origin::Hearsay && entry.failures > MOST_FAILURES {
            self.entries.remove(&address);
        }
    }

    /// This node itself is there, it seems.
    pub(crate) fn is_own(&mut self, address: SocketAddr, now: Instant) {
        self.entries.remove(&address);
        if self.own.len() < MOST {
            self.own.insert(address, now + OWN);
        }
    }

    /// A peer is gone: it is dialled again, with a little chance in the time.
    pub(crate) fn lost(&mut self, name: &NodeId, now: Instant) {
        let courtesy = if *name < self.me {
            COURTESY
        } else {
            Duration::ZERO
        };
        for entry in self.entries.values_mut() {
            if entry.name.as_ref() == Some(name) {
                entry.failures = 0;
                entry.due = now + courtesy + PAUSES[0].mul_f64(self.random.f64());
            }
        }
    }

    /// The number of addresses.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    fn is_wanted(&self, is_peer: &impl Fn(&NodeId) -> bool) -> bool {
        !self.is_dialled && !self.name.as_ref().is_some_and(is_peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn name(name: &str) -> NodeId {
        NodeId::new(name).unwrap()
    }

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn nothing(_: &NodeId) -> bool {
        false
    }

    #[test]
    fn a_seed_is_dialled_once_at_a_time_and_less_and_less_often() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        assert_eq!(book.due(START, nothing), []);
        let mut now = START;
        let mut pauses = Vec::new();
        for _ in 0..100 {
            book.dialled(at(1), None, now);
            let due = book.next(nothing).unwrap();
            pauses.push(due - now);
            now = due;
            assert_eq!(book.due(now, nothing), [at(1)]);
        }
        assert!(pauses[0] <= 2 * PAUSES[0], "{:?}", pauses[0]);
        assert!(pauses.iter().all(|it| *it <= PAUSES[1]));
        assert!(pauses[10..].iter().all(|it| *it >= PAUSES[1] / 2));
        assert!(pauses[10..].iter().any(|it| *it != pauses[10]), "chance");
    }

    #[test]
    fn the_lower_name_dials_first() {
        let mut book = Book::new(name("beta"), 1);
        book.learn(at(1), Some(&name("alpha")), Origin::Hearsay, START);
        book.learn(at(2), Some(&name("gamma")), Origin::Hearsay, START);
        assert_eq!(book.due(START, nothing), [at(2)]);
        assert_eq!(book.due(START + COURTESY, nothing), [at(1)]);
    }

    #[test]
    fn peers_are_not_dialled_until_they_are_lost() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        book.dialled(at(1), Some(&name("gamma")), START);
        let later = START + Duration::from_secs(60);
        assert_eq!(book.due(later, |it| *it == name("gamma")), []);
        book.lost(&name("gamma"), later);
        assert!(book.next(nothing).unwrap() <= later + PAUSES[0]);
    }

    #[test]
    fn a_node_speaks_for_its_own_address_alone() {
        let mut book = Book::new(name("beta"), 1);
        let gamma = name("gamma");
        book.learn(at(1), Some(&gamma), Origin::Own, START);
        // Another peer says that gamma is elsewhere.
        book.learn(at(2), Some(&gamma), Origin::Hearsay, START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        // Gamma has moved.
        book.learn(at(3), Some(&gamma), Origin::Own, START);
        assert_eq!(book.due(START, nothing), [at(3)]);
        assert_eq!(book.len(), 1);
    }

    #[test]
    fn the_own_address_is_met_once() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        book.is_own(at(1), START);
        book.seeds(&[at(1)], START);
        book.learn(at(2), Some(&name("beta")), Origin::Hearsay, START);
        assert_eq!(book.len(), 0);
        // Another node may be there later.
        book.seeds(&[at(1)], START + OWN);
        assert_eq!(book.len(), 1);
    }

    #[test]
    fn hearsay_keeps_no_seed_from_being_dialled() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        book.learn(at(1), Some(&name("gamma")), Origin::Hearsay, START);
        assert_eq!(book.due(START, |it| *it == name("gamma")), [at(1)]);
    }

    #[test]
    fn a_full_book_takes_new_nodes_in_place_of_dead_ones() {
        let mut book = Book::new(name("beta"), 1);
        let mut now = START;
        for port in 1..=u16::try_from(MOST).unwrap() {
            let pod = name(&format!("pod-{port}"));
            book.learn(at(port), Some(&pod), Origin::Own, now);
        }
        for _ in 0..=MOST_FAILURES {
            now = now + PAUSES[1];
            for address in book.due(now, nothing) {
                book.dialled(address, None, now);
            }
        }
        book.learn(at(5000), Some(&name("new")), Origin::Own, now);
        book.seeds(&[at(5001)], now);
        assert!(book.due(now, nothing).ends_with(&[at(5000), at(5001)]));
        assert_eq!(book.len(), MOST);
    }

    #[test]
    fn hearsay_is_bounded_and_forgotten_and_seeds_are_not() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        for port in 2..=u16::MAX {
            book.learn(at(port), Some(&name("gamma")), Origin::Hearsay, START);
        }
        assert_eq!(book.len(), MOST);
        let mut now = START;
        for _ in 0..=MOST_FAILURES {
            now = now + PAUSES[1];
            for address in book.due(now, nothing) {
                book.dialled(address, None, now);
            }
        }
        assert_eq!(book.len(), 1);
        // The discovery does not say the seed any more.
        book.seeds(&[], now);
        now = now + PAUSES[1];
        for address in book.due(now, nothing) {
            book.dialled(address, None, now);
        }
        assert_eq!(book.len(), 0);
    }
}
