//! Nodes with names and locks over a store with faults, in a time of their own.
//!
//! The machine of each node is played by a seed: operations are lost and late, nodes are cut off,
//! paused and restarted, their clocks and the store's run at different speeds. After each event the
//! owners are counted: by each node's own clock, at this moment, at most one claim has a name. In
//! the end each name's history must be linearizable.

use super::machine::{ClaimId, Machine, Refused, Todo};
use crate::linear::{Called, Object, is_linearizable};
use crate::store::{
    Revision, Store, StoreAnswer, StoreChange, StoreError, StoreFaults, StoreReply, StoreWatch,
    TwinStore,
};
use fastrand::Rng;
use ganger_proc_api::Instant;
use ganger_sync::sync::{Mutex, lock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(10);
const NODES: usize = 3;

type Answers = Arc<Mutex<Vec<(u64, Result<StoreAnswer, StoreError>)>>>;
type Changes = Arc<Mutex<Vec<StoreChange>>>;

struct Node {
    port: Arc<dyn Store>,
    machine: Machine,
    answers: Answers,
    changes: Changes,
    _watch: StoreWatch,
    /// Thousandths of the time that its clock shows.
    rate: u64,
    is_paused: bool,
    wants: BTreeMap<ClaimId, Claim>,
}

struct Claim {
    key: usize,
    is_lock: bool,
    token: Option<Revision>,
    /// The owner has seen the loss.
    is_over: bool,
    /// When the claim was made, and when it was last seen to be held.
    asked: u64,
    seen: u64,
}

/// A name or a lock, by calls one after the other.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Owned {
    by: Option<ClaimId>,
    last: Revision,
}

#[derive(Debug, Clone)]
enum Turn {
    /// With the token, if an answer has told it.
    Take(ClaimId, Option<Revision>),
    Leave(ClaimId),
}

impl Object for Owned {
    type Op = Turn;

    fn after(&self, turn: &Turn, _: bool) -> Option<Self> {
        match turn {
            Turn::Take(by, token) => {
                let last = token.unwrap_or(self.last);
                let is_free = self.by.is_none() && (token.is_none() || last > self.last);
                let by = Some(*by);
                is_free.then_some(Self { by, last })
            }
            Turn::Leave(by) => (self.by == Some(*by)).then_some(Self {
                by: None,
                last: self.last,
            }),
        }
    }
}

struct World {
    store: TwinStore,
    random: Rng,
    nodes: Vec<Node>,
    runs: u64,
    claims: u64,
    /// The greatest token given for each name and each lock.
    greatest: BTreeMap<(bool, usize), Revision>,
    granted: u64,
    lost: u64,
    /// Of each name and each lock.
    histories: BTreeMap<(bool, usize), Vec<Called<Turn>>>,
    ticks: u64,
}

fn key(key: usize) -> String {
    format!("key {key}")
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            store: TwinStore::new(seed),
            random: Rng::with_seed(seed),
            nodes: Vec::new(),
            runs: 0,
            claims: 0,
            greatest: BTreeMap::new(),
            granted: 0,
            lost: 0,
            histories: BTreeMap::new(),
            ticks: 0,
        };
        world.nodes = (0..NODES).map(|index| world.node(index)).collect();
        world
    }

    fn node(&mut self, index: usize) -> Node {
        self.runs += 1;
        let port = self.store.port(&format!("node {index}"));
        let (answers, changes) = (Answers::default(), Changes::default());
        let told = Arc::clone(&changes);
        let watcher = Box::new(move |change| lock(&told).push(change));
        Node {
            machine: Machine::new(TTL),
            _watch: port.watch(super::cache::ALL, watcher),
            port,
            answers,
            changes,
            rate: self.random.u64(700..1300),
            is_paused: false,
            wants: BTreeMap::new(),
        }
    }

    fn now(&self, node: usize) -> Instant {
        let nanos = self.store.now().as_nanos();
        Instant::from_nanos(nanos / 1000 * self.nodes[node].rate)
    }

    /// Lets a node handle all that has come.
    fn step(&mut self, index: usize) {
        let now = self.now(index);
        loop {
            let node = &mut self.nodes[index];
            let answers = std::mem::take(&mut *lock(&node.answers));
            let changes = std::mem::take(&mut *lock(&node.changes));
            for (number, answer) in answers {
                node.machine.answered(number, answer, now);
            }
            for change in changes {
                node.machine.changed(change, now);
            }
            node.machine.tick(now);
            let todo = node.machine.todo();
            if todo.is_empty() {
                return;
            }
            for todo in todo {
                self.act(index, todo, now);
            }
        }
    }

    fn act(&mut self, index: usize, todo: Todo, now: Instant) {
        let node = &mut self.nodes[index];
        match todo {
            Todo::Ask(number, op) => {
                let answers = Arc::clone(&node.answers);
                let reply = StoreReply::new(move |answer| lock(&answers).push((number, answer)));
                node.port.apply(op, reply);
            }
            Todo::Granted(id) => {
                let claim = node.wants.get_mut(&id).expect("a wanted claim is granted");
                assert!(claim.token.is_none(), "a claim is granted twice");
                if let Some((token, _)) = node.machine.held(id, now) {
                    claim.token = Some(token);
                    self.ticks += 1;
                    let of = (claim.is_lock, claim.key);
                    self.histories.entry(of).or_default().push(Called {
                        op: Turn::Take(id, Some(token)),
                        called: claim.asked,
                        returned: Some(self.ticks),
                    });
                    let greatest = self.greatest.entry(of).or_default();
                    assert!(token > *greatest, "a token goes back");
                    *greatest = token;
                    self.granted += 1;
                }
            }
            Todo::Refused(id, why) => {
                let claim = node.wants.remove(&id).expect("a wanted claim is refused");
                assert!(claim.token.is_none(), "a granted claim is refused: {why:?}");
                if let Refused::Taken(value, _) = why {
                    assert!(!value.is_empty());
                }
            }
            Todo::Lost(id) => {
                let claim = node.wants.remove(&id).expect("a wanted claim is lost");
                self.lost += u64::from(claim.token.is_some());
                self.leave(id, Some(claim));
            }
        }
    }

    /// Checks that at most one claim has each name and each lock, as its owner would see it now.
    fn look(&mut self) {
        self.ticks += 1;
        for is_lock in [false, true] {
            for key in 0..2 {
                let mut owners = Vec::new();
                for index in 0..NODES {
                    let now = self.now(index);
                    let node = &mut self.nodes[index];
                    let claims = node.wants.iter_mut();
                    let of = claims.filter(|(_, it)| (it.is_lock, it.key) == (is_lock, key));
                    for (id, claim) in of {
                        let held = node.machine.held(*id, now);
                        assert!(held.is_none() || !claim.is_over, "a lost claim is back");
                        let has_ended = claim.token.is_some() && held.is_none();
                        // The claim may end at any time from the last look on that has seen it.
                        if has_ended && !claim.is_over {
                            let history = self.histories.entry((is_lock, key)).or_default();
                            history.push(Called {
                                op: Turn::Leave(*id),
                                called: claim.seen,
                                returned: None,
                            });
                        }
                        claim.is_over |= has_ended;
                        if held.is_some() {
                            claim.seen = self.ticks;
                        }
                        owners.extend(held.map(|(token, _)| (index, *id, token)));
                    }
                }
                assert!(owners.len() <= 1, "lock {is_lock} key {key}: {owners:?}");
            }
        }
    }

    fn disturb(&mut self) {
        let index = self.random.usize(..NODES);
        let name = format!("node {index}");
        match self.random.u8(0..40) {
            0..4 => {
                let faults = StoreFaults {
                    down: self.random.u8(0..3) == 0,
                    slow: Duration::from_millis(self.random.u64(0..3_000)),
                    lost: self.random.u32(0..300),
                };
                self.store.faults_of(&name, faults);
            }
            4..8 => self.store.faults_of(&name, StoreFaults::default()),
            8 => self.nodes[index].is_paused = true,
            9..11 => self.nodes[index].is_paused = false,
            11 if self.random.bool() => self.crash(index),
            12 => self.store.restart(),
            13 => self.store.skew(self.random.u32(700..1300)),
            14..28 => self.claim(index),
            _ => self.release(index),
        }
    }

    /// Crashes a node, of which another run begins.
    fn crash(&mut self, index: usize) {
        let new = self.node(index);
        let before = std::mem::replace(&mut self.nodes[index], new);
        for (id, claim) in before.wants {
            self.leave(id, Some(claim));
        }
    }

    /// Notes that the owner gives the claim up, or has crashed: from now on the store may give it
    /// on.
    fn leave(&mut self, id: ClaimId, claim: Option<Claim>) {
        let Some(claim) = claim.filter(|it| it.token.is_some() && !it.is_over) else {
            return;
        };
        let of = (claim.is_lock, claim.key);
        self.histories.entry(of).or_default().push(Called {
            op: Turn::Leave(id),
            called: claim.seen,
            returned: None,
        });
    }

    /// Checks that each history could have come from calls one after the other.
    fn look_at_histories(&self) {
        for history in self.histories.values() {
            let begin = Owned {
                by: None,
                last: Revision(0),
            };
            assert!(is_linearizable(&begin, history), "{history:#?}");
        }
    }

    fn claim(&mut self, index: usize) {
        let now = self.now(index);
        self.claims += 1;
        let (id, key_of) = (self.claims, self.random.usize(..2));
        let is_lock = self.random.bool();
        let node = &mut self.nodes[index];
        if node.is_paused || node.wants.len() > 4 {
            return;
        }
        let claim = Claim {
            key: key_of,
            is_lock,
            token: None,
            is_over: false,
            asked: self.ticks,
            seen: self.ticks,
        };
        node.wants.insert(id, claim);
        let value = id.to_le_bytes().to_vec();
        if is_lock {
            (node.machine).lock(id, &key(key_of), u128::from(id), value, now);
        } else {
            node.machine.name(id, &key(key_of), value, now);
        }
    }

    fn release(&mut self, index: usize) {
        let now = self.now(index);
        let node = &mut self.nodes[index];
        let ids: Vec<_> = node.wants.keys().copied().collect();
        if let Some(id) = self.random.choice(ids).filter(|_| !node.is_paused) {
            node.machine.release(id, now);
            // Earlier news of the claim come first.
            self.step(index);
            let claim = self.nodes[index].wants.remove(&id);
            self.leave(id, claim);
        }
    }

    fn run(&mut self, events: usize) {
        for _ in 0..events {
            let time = Duration::from_millis(self.random.u64(0..400));
            self.store.advance(time);
            // The look is before the step: owners look at the clock by themselves.
            self.look();
            for index in 0..NODES {
                if !self.nodes[index].is_paused {
                    self.step(index);
                    self.look();
                }
            }
            self.disturb();
        }
    }

    /// Ends all faults: then each name and each lock finds an owner.
    fn heal(&mut self) {
        self.store.faults(StoreFaults::default());
        for index in 0..NODES {
            let name = format!("node {index}");
            self.store.faults_of(&name, StoreFaults::default());
            self.nodes[index].is_paused = false;
        }
        self.crash(0);
        self.crash(1);
        let ids: Vec<_> = self.nodes[2].wants.keys().copied().collect();
        let now = self.now(2);
        for id in ids {
            self.nodes[2].machine.release(id, now);
            self.step(2);
            self.nodes[2].wants.remove(&id);
        }
        for _ in 0..200 {
            self.store.advance(Duration::from_millis(500));
            for index in 0..NODES {
                self.step(index);
                self.look();
            }
        }
        let before = self.granted;
        let now = self.now(0);
        for (id, is_lock, of) in [(1, false, 0), (2, false, 1), (3, true, 0), (4, true, 1)] {
            let id = self.claims + id;
            let claim = Claim {
                key: of,
                is_lock,
                token: None,
                is_over: false,
                asked: self.ticks,
                seen: self.ticks,
            };
            let node = &mut self.nodes[0];
            node.wants.insert(id, claim);
            let value = id.to_le_bytes().to_vec();
            if is_lock {
                (node.machine).lock(id, &key(of), u128::from(id), value, now);
            } else {
                node.machine.name(id, &key(of), value, now);
            }
        }
        for _ in 0..20 {
            self.step(0);
            self.store.advance(Duration::from_millis(500));
            self.look();
        }
        assert_eq!(self.granted, before + 4, "a free name is not given");
    }
}

// pins: B33, B34, B35
#[test]
fn no_name_and_no_lock_has_two_owners() {
    let seeds = std::env::var("GANGER_STRONG_SEEDS");
    let seeds = seeds.ok().and_then(|it| it.parse().ok()).unwrap_or(150);
    let (mut granted, mut lost) = (0, 0);
    for seed in 0..seeds {
        let mut world = World::new(seed);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.run(600);
            world.look_at_histories();
            world.heal();
        }));
        if let Err(panic) = played {
            eprintln!("the seed is {seed}");
            std::panic::resume_unwind(panic);
        }
        granted += world.granted;
        lost += world.lost;
    }
    assert!(
        granted > 40 * seeds && lost > seeds,
        "{granted} granted, {lost} lost"
    );
}
