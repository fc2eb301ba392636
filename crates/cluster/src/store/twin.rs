//! A store of a single program, with faults.

use super::api::{Store, StoreAnswer, StoreError, StoreOp, StoreReply};
use super::change::{StoreChange, StoreWatch, StoreWatcher};
use super::table::{Effect, Table};
use fastrand::Rng;
use ganger_proc_api::Instant;
use ganger_sched::internal::{choose, here};
use ganger_sync::sync::{Condvar, Mutex, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Without news the thread of the clock looks again after this time.
const LOOK: Duration = Duration::from_millis(20);

/// Faults between a node and a [`TwinStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StoreFaults {
    /// The node can't reach the store: operations are refused, watches are lost.
    pub down: bool,
    /// How long an operation is under way to the store at most, and its answer back. The times are
    /// random, so operations may overtake each other.
    pub slow: Duration,
    /// The share of operations whose answers are lost, in thousandths. Half of them are carried
    /// out.
    pub lost: u32,
}

/// A consistent store for nodes of a single program, with faults by a seed. A clone is the same
/// store.
///
/// Its time moves when the program moves it, or with the time of the program: [`run`](Self::run).
/// Between the machines of a simulation it is a carrier: the simulation moves it, and decides. An
/// example is at [`Store`].
#[derive(Clone)]
pub struct TwinStore {
    pub(super) state: Arc<Mutex<State>>,
    changed: Arc<Condvar>,
}

pub(super) struct State {
    table: Table,
    now: Instant,
    /// How far a simulation has come. Events due by then may be left.
    pub(super) until: Instant,
    /// The clock of the store, and how much of it passes in a second, in thousandths.
    clock: (Instant, u32),
    random: Rng,
    faults: StoreFaults,
    own_faults: BTreeMap<Arc<str>, StoreFaults>,
    /// The nodes cut off by a simulation.
    pub(super) cut_off: BTreeSet<Box<str>>,
    /// By the time when they are due, then by number.
    due: BTreeMap<(Instant, u64), Due>,
    watches: BTreeMap<u64, Watch>,
    number: u64,
    runs: bool,
}

/// Under way.
enum Due {
    Op(Arc<str>, StoreOp, StoreReply, bool),
    Answer(Answer),
}

struct Watch {
    port: Arc<str>,
    prefix: Box<str>,
    watcher: StoreWatcher,
    is_lost: bool,
}

/// To be given to a node without the lock.
pub(super) struct Answer {
    pub(super) to: Arc<str>,
    reply: StoreReply,
    answer: Result<StoreAnswer, StoreError>,
}

impl Answer {
    pub(super) fn give(self) {
        self.reply.answer(self.answer);
    }
}

pub(super) type Answers = Vec<Answer>;

impl TwinStore {
    /// Creates a store without entries or faults, at time 0. All chance comes from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let state = State {
            table: Table::default(),
            now: Instant::from_nanos(0),
            until: Instant::from_nanos(0),
            clock: (Instant::from_nanos(0), 1000),
            random: Rng::with_seed(seed),
            faults: StoreFaults::default(),
            own_faults: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            due: BTreeMap::new(),
            watches: BTreeMap::new(),
            number: 0,
            runs: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
        }
    }

    /// Returns the store as the node of this name has it.
    #[must_use]
    pub fn port(&self, node: &str) -> Arc<dyn Store> {
        let (twin, node) = (self.clone(), node.into());
        Arc::new(Port { twin, node })
    }

    /// Sets the faults of all nodes without faults of their own.
    pub fn faults(&self, faults: StoreFaults) {
        self.change(|state| state.faults = faults);
    }

    /// Sets the faults of a node.
    pub fn faults_of(&self, node: &str, faults: StoreFaults) {
        self.change(|state| _ = state.own_faults.insert(node.into(), faults));
    }

    /// Sets the speed of the store's clock from now on, in thousandths of the program's.
    pub fn skew(&self, thousandths: u32) {
        self.change(|state| state.clock.1 = thousandths);
    }

    /// Restarts the store: nothing written is lost, each lease has its whole time again, and each
    /// watch begins anew.
    pub fn restart(&self) {
        self.change(|state| {
            state.table.honour(state.clock.0);
            for watch in state.watches.values_mut() {
                watch.lose();
            }
        });
    }

    /// Returns the time of the store's program, without skew.
    #[must_use]
    pub fn now(&self) -> Instant {
        lock(&self.state).now
    }

    /// Moves the time.
    pub fn advance(&self, time: Duration) {
        self.advance_to(self.now() + time);
    }

    /// Moves the time to a moment. An earlier moment leaves the time where it is.
    pub fn advance_to(&self, end: Instant) {
        loop {
            let mut answers = Answers::new();
            let is_over = lock(&self.state).step(end, &mut answers);
            answers.into_iter().for_each(Answer::give);
            if is_over {
                return;
            }
        }
    }

    /// Moves the time with the time of the program, on a thread, until the result is dropped.
    ///
    /// # Panics
    /// The system refuses the thread.
    pub fn run(&self) -> RunningStore {
        lock(&self.state).runs = true;
        let store = self.clone();
        let name = "ganger-twin-store".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || run(&store));
        let thread = Some(thread.expect("the system gives the clock of a store a thread"));
        let store = self.clone();
        RunningStore { store, thread }
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        change(&mut state);
        state.look_at_watches();
        self.changed.notify_all();
    }
}

impl fmt::Debug for TwinStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TwinStore")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

impl State {
    fn faults_of(&self, port: &str) -> StoreFaults {
        let mut faults = self.own_faults.get(port).copied().unwrap_or(self.faults);
        faults.down |= self.cut_off.contains(port);
        faults
    }

    /// Draws whether an event with this share happens. In a simulation, chance is the simulation's:
    /// without faults the choice is the first.
    fn chance(&mut self, what: &'static str, share: u32) -> bool {
        share > 0
            && match choose(what, 1000) {
                Some(chosen) => 999 - chosen < share as usize,
                None => self.random.u32(..1000) < share,
            }
    }

    fn due(&mut self, slow: Duration, due: Due) {
        let micros = usize::try_from(slow.as_micros()).unwrap_or(usize::MAX);
        let late = match choose("store is slow by", micros.saturating_add(1)) {
            Some(chosen) => Duration::from_micros(chosen as u64),
            None => {
                let most = u64::try_from(slow.as_nanos()).unwrap_or(u64::MAX);
                Duration::from_nanos(self.random.u64(..=most))
            }
        };
        self.number += 1;
        self.due.insert((self.now + late, self.number), due);
    }

    /// Sends an operation from the node.
    fn send(&mut self, port: &Arc<str>, op: StoreOp, reply: StoreReply, answers: &mut Answers) {
        let faults = self.faults_of(port);
        let is_lost = self.chance("store's answer is lost", faults.lost);
        let (to, unknown) = (Arc::clone(port), lost(&op));
        if faults.down {
            let answer = Err(down());
            answers.push(Answer { to, reply, answer });
        } else if is_lost && self.chance("operation is lost", 500) {
            let answer = Err(unknown);
            answers.push(Answer { to, reply, answer });
        } else if faults.slow.is_zero() {
            self.arrive(port, op, reply, is_lost, answers);
        } else {
            self.due(faults.slow, Due::Op(Arc::clone(port), op, reply, is_lost));
        }
    }

    /// Handles an operation at the store.
    fn arrive(
        &mut self,
        port: &Arc<str>,
        op: StoreOp,
        reply: StoreReply,
        is_lost: bool,
        answers: &mut Answers,
    ) {
        let faults = self.faults_of(port);
        let (to, unknown) = (Arc::clone(port), lost(&op));
        if faults.down {
            let answer = Err(unknown);
            answers.push(Answer { to, reply, answer });
            return;
        }
        let mut effects = Vec::new();
        let answer = self.table.apply(op, self.clock.0, &mut effects);
        self.tell(&effects);
        let answer = if is_lost { Err(unknown) } else { answer };
        let answer = Answer { to, reply, answer };
        if faults.slow.is_zero() {
            answers.push(answer);
        } else {
            self.due(faults.slow, Due::Answer(answer));
        }
    }

    /// Tells the watches, in the order of the changes.
    fn tell(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Some((key, change)) = effect.key().zip(effect.change()) else {
                continue;
            };
            let watches = self.watches.values();
            for watch in watches.filter(|it| !it.is_lost && key.starts_with(&*it.prefix)) {
                (watch.watcher)(change.clone());
            }
        }
    }

    /// Loses watches, or begins them anew, as the faults say.
    fn look_at_watches(&mut self) {
        let mut watches = std::mem::take(&mut self.watches);
        for watch in watches.values_mut() {
            let is_down = self.faults_of(&watch.port).down;
            if is_down && !watch.is_lost {
                watch.lose();
            } else if !is_down && watch.is_lost {
                watch.is_lost = false;
                (watch.watcher)(self.table.snapshot(&watch.prefix));
            }
        }
        self.watches = watches;
    }

    /// Returns when the next lease ends, or something under way comes.
    pub(super) fn next(&self) -> Option<Instant> {
        let rate = u64::from(self.clock.1.max(1));
        let lease = self.table.next_end().map(|ends| {
            let left = ends.since(self.clock.0);
            let nanos =
                u128::from(left.as_secs()) * 1_000_000_000 + u128::from(left.subsec_nanos());
            let nanos = (nanos * 1000).div_ceil(u128::from(rate));
            self.now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        let due = self.due.keys().next().map(|(at, _)| *at);
        lease.into_iter().chain(due).min()
    }

    /// Has the time pass, as far as nothing is due before.
    pub(super) fn pass(&mut self, end: Instant) {
        let end = self.next().map_or(end, |next| next.min(end));
        let passed = end.since(self.now);
        self.now = self.now + passed;
        self.clock.0 = self.clock.0 + passed * self.clock.1 / 1000;
    }

    /// Goes on to the next event, or to the end. True: nothing is left until then.
    pub(super) fn step(&mut self, end: Instant, answers: &mut Answers) -> bool {
        let has_next = self.next().is_some_and(|at| at <= end);
        self.pass(end);
        let mut effects = Vec::new();
        self.table.expire(self.clock.0, &mut effects);
        self.tell(&effects);
        if !has_next {
            return true;
        }
        if let Some(due) = self.due.first_entry().filter(|it| it.key().0 <= self.now) {
            match due.remove() {
                Due::Op(port, op, reply, is_lost) => {
                    self.arrive(&port, op, reply, is_lost, answers);
                }
                Due::Answer(answer) => answers.push(answer),
            }
        }
        false
    }
}

impl Watch {
    fn lose(&mut self) {
        if !self.is_lost {
            self.is_lost = true;
            (self.watcher)(StoreChange::Lost);
        }
    }
}

fn down() -> StoreError {
    StoreError::Unavailable("the twin's store is down".into())
}

/// Returns the error of an operation whose answer is lost.
fn lost(op: &StoreOp) -> StoreError {
    if op.is_read() {
        StoreError::Unavailable("the answer is lost".into())
    } else {
        StoreError::Unknown
    }
}

/// The store as a node has it.
struct Port {
    twin: TwinStore,
    node: Arc<str>,
}

impl Store for Port {
    fn apply(&self, op: StoreOp, reply: StoreReply) {
        let mut answers = Answers::new();
        let mut state = lock(&self.twin.state);
        state.send(&self.node, op, reply, &mut answers);
        drop(state);
        self.twin.changed.notify_all();
        answers.into_iter().for_each(Answer::give);
    }

    fn watch(&self, prefix: &str, watcher: StoreWatcher) -> StoreWatch {
        let mut state = lock(&self.twin.state);
        state.number += 1;
        let number = state.number;
        let watch = Watch {
            port: Arc::clone(&self.node),
            prefix: prefix.into(),
            watcher,
            is_lost: true,
        };
        state.watches.insert(number, watch);
        state.look_at_watches();
        drop(state);
        let state = Arc::downgrade(&self.twin.state);
        StoreWatch::new(move || {
            let state = state.upgrade();
            let watch = state.and_then(|state| lock(&state).watches.remove(&number));
            // Without the lock.
            drop(watch);
        })
    }

    fn describe(&self) -> String {
        "a store of this program alone, for tests".to_owned()
    }
}

/// Moves the clock of a twin's store with the time of the program: see [`TwinStore::run`]. Dropping
/// it stops the clock.
#[derive(Debug)]
#[must_use = "dropping it stops the clock"]
pub struct RunningStore {
    store: TwinStore,
    thread: Option<JoinHandle<()>>,
}

fn run(store: &TwinStore) {
    let begin = (here::now(), store.now());
    loop {
        let now = begin.1 + (here::now() - begin.0);
        store.advance_to(now);
        let state = lock(&store.state);
        if !state.runs {
            return;
        }
        let due = state.due.keys().next().map(|(at, _)| at.since(now));
        let wait = due.map_or(LOOK, |due| due.min(LOOK));
        let waited = store.changed.wait_timeout(state, wait);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for RunningStore {
    fn drop(&mut self) {
        lock(&self.store.state).runs = false;
        self.store.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
