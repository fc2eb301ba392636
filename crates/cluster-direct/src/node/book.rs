//! The addresses that a node knows, and when it dials each.
//!
//! 1. Seeds come from the discovery and stay as long as the discovery says them.
//! 2. A peer says its own address in its greeting: that beats all hearsay.
//! 3. Peers say addresses of third nodes. Such an address is a hint where to dial, no more: the
//!    node there proves its name, and a list of a peer is short.
//!
//! 4. A name is certain once a dial has met it. An address for which two names are said has none
//!    before: the dial shows which node is there.
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
/// The life of a connection that was no failure.
const STEADY: Duration = Duration::from_secs(5);
/// The most dials under way to addresses of hearsay, and to others. So a peer that says addresses
/// where no node is keeps no known node waiting.
const MOST_DIALS: usize = 32;
/// How long the higher name waits for the lower.
const COURTESY: Duration = Duration::from_secs(1);
/// Hearsay with so many failures is forgotten: after about two minutes.
const MOST_FAILURES: u32 = 30;
/// For how long an address is taken for this node's own. Other nodes may say so without a proof,
/// and an address that balances load leads to this node by chance.
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
    /// Whether the last dial has met it.
    is_met: bool,
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
            entry.claim(name, origin);
            return;
        }
        if self.entries.len() >= MOST && !self.make_room(origin) {
            return;
        }
        let waits = name.is_some_and(|name| *name < self.me);
        let mut due = if waits { now + COURTESY } else { now };
        if origin == Origin::Hearsay {
            // All nodes hear of a new one at once.
            due = due + PAUSES[0].mul_f64(self.random.f64());
        }
        let entry = Entry {
            origin,
            name: name.cloned(),
            is_met: false,
            due,
            failures: 0,
            is_dialled: false,
        };
        self.entries.insert(address, entry);
    }

    /// Notes that a node has come, which says that it is `here`, by a connection with the address
    /// `seen`. Another node may be at other seeds where it was before.
    pub(crate) fn came(&mut self, name: &NodeId, here: Option<SocketAddr>, seen: SocketAddr) {
        for (address, entry) in &mut self.entries {
            let is_before = Some(*address) != here && *address != seen;
            if is_before && entry.origin == Origin::Seed && entry.name.as_ref() == Some(name) {
                entry.name = None;
                entry.is_met = false;
            }
        }
    }

    /// Forgets the address with the most failures, hearsay first. Seeds stay. False: all addresses
    /// stay.
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

    /// Returns the addresses to dial now, which have waited longest first. Each is under way then,
    /// until [`Book::dialled`]. A few are at a time.
    pub(crate) fn due(
        &mut self,
        now: Instant,
        is_peer: impl Fn(&NodeId) -> bool,
    ) -> Vec<SocketAddr> {
        let mut free = self.free();
        let wanted = self.entries.iter().filter(|(_, entry)| entry.due <= now);
        let wanted = wanted.filter(|(_, entry)| entry.is_wanted(&is_peer));
        let mut due: Vec<_> = wanted
            .map(|(address, it)| (it.due, *address, it.pool()))
            .collect();
        due.sort_unstable();
        due.retain(|(.., pool)| {
            let is_free = free[*pool] > 0;
            free[*pool] -= usize::from(is_free);
            is_free
        });
        let due: Vec<_> = due.into_iter().map(|(_, address, _)| address).collect();
        for address in &due {
            if let Some(entry) = self.entries.get_mut(address) {
                entry.is_dialled = true;
            }
        }
        due
    }

    /// Returns when [`Book::due`] has something next, unless a dial ends before.
    pub(crate) fn next(&self, is_peer: impl Fn(&NodeId) -> bool) -> Option<Instant> {
        let free = self.free();
        let wanted = self.entries.values().filter(|it| it.is_wanted(&is_peer));
        let wanted = wanted.filter(|it| free[it.pool()] > 0);
        wanted.map(|it| it.due).min()
    }

    /// Returns how many further dials may be under way, by pool.
    fn free(&self) -> [usize; 2] {
        let mut free = [MOST_DIALS; 2];
        for entry in self.entries.values().filter(|it| it.is_dialled) {
            let free = &mut free[entry.pool()];
            *free = free.saturating_sub(1);
        }
        free
    }

    /// Notes the end of a dial: with the name of the node there, unless the dial has failed.
    pub(crate) fn dialled(&mut self, address: SocketAddr, name: Option<&NodeId>, now: Instant) {
        let Some(entry) = self.entries.get_mut(&address) else {
            return;
        };
        entry.is_dialled = false;
        if let Some(name) = name {
            entry.name = Some(name.clone());
            entry.is_met = true;
            // The connection may break at once, or be refused by a busy peer.
            entry.due = now + entry.pause(&mut self.random);
            return;
        }
        entry.is_met = false;
        entry.failures = entry.failures.saturating_add(1);
        entry.due = now + entry.pause(&mut self.random);
        if entry.origin == Origin::Hearsay && entry.failures > MOST_FAILURES {
            self.entries.remove(&address);
        }
    }

    /// Forgets an address at which this node itself seems to be, and takes it for the own for a
    /// while.
    pub(crate) fn is_own(&mut self, address: SocketAddr, now: Instant) {
        self.entries.remove(&address);
        if self.own.len() < MOST {
            self.own.insert(address, now + OWN);
        }
    }

    /// Notes that a peer is gone, after its connection has lived for this time. The peer is dialled
    /// again, at once with a little chance in the time. A connection that has lived for a moment
    /// was a failure, so that the next dials come less and less often.
    pub(crate) fn lost(&mut self, name: &NodeId, lived: Duration, now: Instant) {
        let courtesy = if *name < self.me {
            COURTESY
        } else {
            Duration::ZERO
        };
        for entry in self.entries.values_mut() {
            if entry.name.as_ref() == Some(name) {
                let pause = if lived < STEADY {
                    entry.failures = entry.failures.saturating_add(1);
                    entry.pause(&mut self.random)
                } else {
                    entry.failures = 0;
                    PAUSES[0].mul_f64(self.random.f64())
                };
                entry.due = now + courtesy + pause;
            }
        }
    }

    /// Returns the number of addresses.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

impl Entry {
    /// Notes that a peer says a node of this name is here. A peer may lie, or several may have been
    /// told the same address, as behind a translation of addresses: none of them hides the node
    /// that is there.
    fn claim(&mut self, name: Option<&NodeId>, origin: Origin) {
        let is_said = name.is_some_and(|name| self.name.as_ref() != Some(name));
        let is_certain = self.is_met && origin == Origin::Hearsay;
        if is_said && !is_certain {
            // Of a seed nothing is known but by a dial.
            let is_first = self.name.is_none() && !self.is_met && self.origin == Origin::Hearsay;
            self.name = name.filter(|_| is_first && origin == Origin::Own).cloned();
            self.is_met = false;
        }
        self.origin = self.origin.max(origin);
    }

    /// Returns the time to the next dial, by the number of failures.
    fn pause(&self, random: &mut Rng) -> Duration {
        let pause = PAUSES[0]
            .saturating_mul(1 << self.failures.min(10))
            .min(PAUSES[1]);
        let half = pause / 2;
        half + half.mul_f64(random.f64())
    }

    /// Returns the pool in which a dial counts.
    fn pool(&self) -> usize {
        usize::from(self.origin == Origin::Hearsay)
    }

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

    /// Fails all dials that are due.
    fn fail_all(book: &mut Book, now: Instant) {
        loop {
            let due = book.due(now, nothing);
            if due.is_empty() {
                return;
            }
            for address in due {
                book.dialled(address, None, now);
            }
        }
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
        let soon = START + PAUSES[0];
        assert_eq!(book.due(soon, nothing), [at(2)]);
        assert_eq!(book.due(soon + COURTESY, nothing), [at(1)]);
    }

    #[test]
    fn peers_are_not_dialled_until_they_are_lost() {
        let mut book = Book::new(name("beta"), 1);
        book.seeds(&[at(1)], START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        book.dialled(at(1), Some(&name("gamma")), START);
        let later = START + Duration::from_secs(60);
        assert_eq!(book.due(later, |it| *it == name("gamma")), []);
        book.lost(&name("gamma"), STEADY, later);
        assert!(book.next(nothing).unwrap() <= later + PAUSES[0]);
    }

    #[test]
    fn a_connection_that_breaks_at_once_is_dialled_less_and_less_often() {
        let mut book = Book::new(name("alpha"), 1);
        let gamma = name("gamma");
        book.seeds(&[at(1)], START);
        let mut now = START;
        let mut dials = 0;
        while now < START + Duration::from_secs(60) {
            assert_eq!(book.due(now, nothing), [at(1)]);
            book.dialled(at(1), Some(&gamma), now);
            book.lost(&gamma, Duration::from_millis(1), now);
            now = book.next(nothing).unwrap();
            dials += 1;
        }
        assert!(dials < 40, "{dials}");
        // A connection that has lived is followed by another at once.
        book.due(now, nothing);
        book.dialled(at(1), Some(&gamma), now);
        book.lost(&gamma, STEADY, now);
        assert!(book.next(nothing).unwrap() <= now + PAUSES[0]);
    }

    #[test]
    fn a_few_addresses_are_dialled_at_a_time_and_each_comes_to_its_turn() {
        let mut book = Book::new(name("beta"), 1);
        let seeds: Vec<_> = (1..=200).map(at).collect();
        book.seeds(&seeds, START);
        let mut now = START;
        let mut met = std::collections::BTreeSet::new();
        // All fail, and the first are due again before the last have been dialled.
        while met.len() < seeds.len() {
            let due = book.due(now, nothing);
            assert!((1..=MOST_DIALS).contains(&due.len()), "{}", due.len());
            assert_eq!(book.next(nothing), None, "a dial has to end first");
            now = now + PAUSES[1];
            for address in due {
                book.dialled(address, None, now);
                met.insert(address);
            }
            assert!(now < START + PAUSES[1] * 14, "{}", met.len());
        }
    }

    #[test]
    fn a_claim_hides_no_other_node() {
        let (beta, mallory) = (name("beta"), name("mallory"));
        let is_mallory = |it: &NodeId| *it == name("mallory");
        let later = START + COURTESY + PAUSES[1];
        let claimed = |before: &dyn Fn(&mut Book)| {
            let mut book = Book::new(name("alpha"), 1);
            before(&mut book);
            book.learn(at(1), Some(&mallory), Origin::Own, START);
            book
        };
        // An address without another node is mallory's, until another is said to be there.
        let mut book = claimed(&|_| ());
        assert_eq!(book.due(later, is_mallory), []);
        book.learn(at(1), Some(&beta), Origin::Hearsay, START);
        assert_eq!(book.due(later, is_mallory), [at(1)]);
        // The dial has the last word, and hearsay changes nothing of it.
        book.dialled(at(1), Some(&beta), later);
        book.learn(at(1), Some(&mallory), Origin::Hearsay, later);
        assert_eq!(book.due(later + PAUSES[1], |it| *it == beta), []);
        // A seed, and the address of another node.
        let seed = |book: &mut Book| book.seeds(&[at(1)], START);
        assert_eq!(claimed(&seed).due(later, is_mallory), [at(1)]);
        for origin in [Origin::Hearsay, Origin::Own] {
            let known = |book: &mut Book| book.learn(at(1), Some(&beta), origin, START);
            assert_eq!(claimed(&known).due(later, is_mallory), [at(1)]);
        }
    }

    #[test]
    fn a_node_speaks_for_its_own_address_alone() {
        let mut book = Book::new(name("beta"), 1);
        let gamma = name("gamma");
        book.learn(at(1), Some(&gamma), Origin::Own, START);
        // Another peer gives gamma another address.
        book.learn(at(2), Some(&gamma), Origin::Hearsay, START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        // Gamma has moved.
        book.learn(at(3), Some(&gamma), Origin::Own, START);
        assert_eq!(book.due(START, nothing), [at(3)]);
        assert_eq!(book.len(), 1);
    }

    #[test]
    fn lies_keep_no_known_node_waiting() {
        let mut book = Book::new(name("alpha"), 1);
        for port in 2..1000 {
            let lie = name(&format!("lie-{port}"));
            book.learn(at(port), Some(&lie), Origin::Hearsay, START);
        }
        let later = START + COURTESY;
        assert_eq!(book.due(later, nothing).len(), MOST_DIALS);
        assert_eq!(book.next(nothing), None, "a dial has to end first");
        book.learn(at(1), Some(&name("beta")), Origin::Own, later);
        assert_eq!(book.next(nothing), Some(later));
        assert_eq!(book.due(later, nothing), [at(1)]);
    }

    #[test]
    fn a_seed_that_a_node_has_left_is_dialled_for_another() {
        let gamma = name("gamma");
        let is_gamma = |it: &NodeId| *it == name("gamma");
        let mut book = Book::new(name("alpha"), 1);
        book.seeds(&[at(1)], START);
        assert_eq!(book.due(START, nothing), [at(1)]);
        book.dialled(at(1), Some(&gamma), START);
        let later = START + PAUSES[1];
        // By the seed, to a node that says another address.
        book.came(&gamma, Some(at(2)), at(1));
        assert_eq!(book.due(later, is_gamma), []);
        book.came(&gamma, Some(at(1)), at(3));
        assert_eq!(book.due(later, is_gamma), []);
        // From elsewhere, after a restart.
        book.came(&gamma, Some(at(2)), at(3));
        assert_eq!(book.due(later, is_gamma), [at(1)]);
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
            fail_all(&mut book, now);
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
            fail_all(&mut book, now);
        }
        assert_eq!(book.len(), 1);
        // The discovery does not say the seed any more.
        book.seeds(&[], now);
        now = now + PAUSES[1];
        fail_all(&mut book, now);
        assert_eq!(book.len(), 0);
    }
}
