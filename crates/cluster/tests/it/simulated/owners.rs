//! Strong names and locks on machines of a simulation, which crash, start again, stand still, lose
//! each other and their store, while their clocks run at different rates. The store is the
//! simulation's; the engine is any.

use ganger_cluster::conformance::OwnerHistory;
use ganger_cluster::{
    Cluster, Engine, FencingToken, NameLost, Owner as Owned, StoreFaults, StrongError, StrongLock,
    StrongNames, TwinStore,
};
use ganger_proc_api::{
    Actor, CommandError, Completion, Context, NodeName, Pid, StepOutput, StepResult, Tag,
};
use ganger_sched::{Address, Answer, Call, Recipient};
use ganger_sim::World;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const MACHINES: [&str; 3] = ["alpha", "beta", "gamma"];
pub(crate) const NAMES: [&str; 2] = ["billing", "shipping"];
const LOCKS: [&str; 2] = ["till", "gate"];

/// An owner that can't renew its lease of 10 s has the name for 5 s by its own clock, whose rate is
/// 0.7 at least.
pub(crate) const HALF: Duration = Duration::from_millis(7_200);

/// The slowest clock ends a lease after so long: 10 s / 0.7.
pub(crate) const WHOLE: Duration = Duration::from_millis(14_300);

/// The owners' acts and notices.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Grows with each call and each answer.
    ticks: u64,
    /// Of each name and each lock.
    histories: BTreeMap<&'static str, OwnerHistory>,
    /// How often each owner was told of its loss.
    pub(crate) lost: BTreeMap<Pid, u32>,
    pub(crate) granted: usize,
    pub(crate) refused: usize,
    pub(crate) used: usize,
    /// The numbers of given and of lost locks.
    pub(crate) locks: [usize; 2],
    wrong: Vec<String>,
}

type Shared = Arc<Mutex<Ledger>>;

impl Ledger {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn history(&mut self, of: &'static str) -> &mut OwnerHistory {
        self.histories.entry(of).or_default()
    }

    fn grants(&mut self, name: &'static str, token: FencingToken, called: u64) {
        let now = self.tick();
        self.history(name).granted(token, called..=now);
    }

    fn uses(&mut self, name: &'static str, token: FencingToken) {
        self.used += 1;
        let now = self.tick();
        self.history(name).used(token, now..=now);
    }

    fn finds(&mut self, name: &'static str, owner: Option<FencingToken>, called: u64) {
        let now = self.tick();
        self.history(name).found(owner, called..=now);
    }

    /// Checks that each history could have come from calls one after the other.
    fn check(&self) {
        for (of, history) in &self.histories {
            if let Err(why) = history.check() {
                panic!("the history of {of:?} is not linearizable: {why}");
            }
        }
    }

    fn is_lost(&mut self, owner: Pid) {
        let lost = self.lost.entry(owner).or_default();
        *lost += 1;
        if *lost > 1 {
            let what = format!("{owner} is told of its loss {lost} times");
            self.wrong.push(what);
        }
    }
}

/// Wants a name from its start on, and uses it while it has it.
struct Owner {
    at: &'static str,
    name: &'static str,
    names: StrongNames,
    ledger: Shared,
    asked: u64,
}

pub(crate) enum Order {
    Begin(Recipient<NameLost>),
    Lost,
    Use,
    End,
}

impl From<NameLost> for Order {
    fn from(_: NameLost) -> Self {
        Self::Lost
    }
}

const ASKED: Tag = 1;

impl Owner {
    fn uses(&self) {
        if let Some(token) = self.names.token(self.name) {
            self.ledger.lock().unwrap().uses(self.name, token);
        }
    }
}

impl Actor for Owner {
    type Message = Order;

    fn receive(&mut self, ctx: &Context, order: Order, out: &mut StepOutput) -> StepResult {
        match order {
            Order::Begin(own) => {
                self.asked = self.ledger.lock().unwrap().tick();
                out.ask(self.names.register(self.name, own), ASKED);
            }
            Order::Lost => {
                let own = ctx.pid().with_node(NodeName::new(self.at).ok());
                self.ledger.lock().unwrap().is_lost(own);
            }
            Order::Use => self.uses(),
            Order::End => out.done(()),
        }
        Ok(())
    }

    fn completed(&mut self, _: &Context, answer: Completion, out: &mut StepOutput) -> StepResult {
        let answer = answer.take::<FencingToken>();
        let mut ledger = self.ledger.lock().unwrap();
        match answer {
            Ok(token) => {
                ledger.granted += 1;
                ledger.grants(self.name, token, self.asked);
                drop(ledger);
                self.uses();
            }
            Err(why) => {
                ledger.refused += 1;
                if let CommandError::Failed(why) = why
                    && let Some(StrongError::Taken(by)) = why.downcast_ref()
                {
                    ledger.finds(self.name, Some(by.token), self.asked);
                }
                out.done(());
            }
        }
        Ok(())
    }
}

/// A question of the test, asked at a machine.
struct Asked<T> {
    at: &'static str,
    of: &'static str,
    called: u64,
    answer: Answer<T>,
}

/// The machines, and their owners.
pub(crate) struct Play<'w, 'a> {
    world: &'w World<'a>,
    pub(crate) ledger: Shared,
    /// Of the present life of each machine.
    names: Rc<RefCell<BTreeMap<&'static str, StrongNames>>>,
    owners: Vec<(&'static str, Address<Order>)>,
    /// Wanted locks, and looks at the store.
    wanted: Vec<Asked<StrongLock>>,
    looks: Vec<Asked<Option<Owned>>>,
    held: Vec<(&'static str, &'static str, StrongLock)>,
    /// Since when a machine has not reached the store.
    down: BTreeMap<&'static str, Duration>,
    still: BTreeMap<&'static str, Still>,
}

/// A machine stands still.
#[derive(Clone, Copy)]
struct Still {
    since: Duration,
    until: Duration,
    /// The test looks at no names there meanwhile: such a look ends a lease that is over, and so
    /// the locks, whose own looks are to be tried.
    is_unseen: bool,
}

impl<'w, 'a> Play<'w, 'a> {
    /// Starts the machines, each with its engine.
    pub(crate) fn start<E: Engine + 'static>(
        world: &'w World<'a>,
        engine: impl Fn(&'static str) -> E + Clone + 'static,
    ) -> Self {
        let store = TwinStore::new(0);
        let mut faults = StoreFaults::default();
        faults.slow = Duration::from_millis(1 + world.choose(2_000) as u64);
        faults.lost = 50;
        store.faults(faults);
        // The clock of the store, as any, runs at 0.7 to 1.3 of the time.
        store.skew(700 + u32::try_from(world.choose(600)).unwrap());
        world.carrier(store.clone());
        let names = Rc::<RefCell<BTreeMap<_, _>>>::default();
        for name in MACHINES {
            let (engine, store, names) = (engine.clone(), store.clone(), Rc::clone(&names));
            world.start(name, move |machine| {
                let node = Cluster::builder()
                    .cookie("secret")
                    .engine(engine(name))
                    .peers(others(name))
                    .store(store.port(name));
                let node = node.join(machine).unwrap();
                names
                    .borrow_mut()
                    .insert(name, node.strong_names().unwrap());
            });
        }
        Self {
            world,
            ledger: Shared::default(),
            names,
            owners: Vec::new(),
            wanted: Vec::new(),
            looks: Vec::new(),
            held: Vec::new(),
            down: BTreeMap::new(),
            still: BTreeMap::new(),
        }
    }

    /// Returns the machines that have a name at this moment, each by its own clock.
    pub(crate) fn holders(&self, name: &'static str) -> Vec<&'static str> {
        let is_unseen = |at| self.still(at).is_some_and(|it| it.is_unseen);
        let has = |at: &&'static str| {
            self.world.is_up(at) && !is_unseen(at) && {
                // The clock of this machine is the test's.
                let _machine = self.world.machine(at);
                let token = self.names.borrow()[at].token(name);
                if let Some(token) = token {
                    self.ledger.lock().unwrap().uses(name, token);
                }
                token.is_some()
            }
        };
        MACHINES.into_iter().filter(has).collect()
    }

    /// Asks at a machine.
    fn ask<T: Send + 'static>(
        &self,
        at: &'static str,
        of: &'static str,
        ask: impl FnOnce(&StrongNames) -> Call<T>,
    ) -> Asked<T> {
        let _machine = self.world.machine(at);
        let called = self.ledger.lock().unwrap().tick();
        let answer = ask(&self.names.borrow()[at]).begin();
        Asked {
            at,
            of,
            called,
            answer,
        }
    }

    fn lock(&mut self, at: &'static str, of: &'static str) {
        let asked = self.ask(at, of, |names| names.lock(of));
        self.wanted.push(asked);
    }

    /// Takes the answers so far.
    fn take_answers(&mut self) {
        let is_ready = |asked: &mut Asked<StrongLock>| asked.answer.is_ready();
        for asked in self.wanted.extract_if(.., is_ready).collect::<Vec<_>>() {
            let _machine = self.world.machine(asked.at);
            // A lost answer, or a store that is down.
            let Ok(lock) = asked.answer.wait() else {
                continue;
            };
            // The lock may be lost by now.
            if let Ok(token) = lock.token() {
                let mut ledger = self.ledger.lock().unwrap();
                ledger.locks[0] += 1;
                ledger.grants(asked.of, token, asked.called);
                self.held.push((asked.at, asked.of, lock));
            }
        }
        let is_ready = |asked: &mut Asked<Option<Owned>>| asked.answer.is_ready();
        for asked in self.looks.extract_if(.., is_ready) {
            let _machine = self.world.machine(asked.at);
            if let Ok(owner) = asked.answer.wait() {
                let owner = owner.map(|it| it.token);
                let mut ledger = self.ledger.lock().unwrap();
                ledger.finds(asked.of, owner, asked.called);
            }
        }
    }

    /// Returns the machines that hold a lock at this moment. Lost locks are dropped.
    fn lock_holders(&mut self, of: &str) -> Vec<&'static str> {
        let mut holders = Vec::new();
        let (world, ledger) = (self.world, &self.ledger);
        self.held.retain(|(at, it, lock)| {
            if *it != of {
                return true;
            }
            let _machine = world.machine(at);
            let token = lock.token();
            let mut ledger = ledger.lock().unwrap();
            match token {
                Ok(token) => {
                    ledger.uses(it, token);
                    holders.push(*at);
                }
                Err(_) => ledger.locks[1] += 1,
            }
            token.is_ok()
        });
        holders
    }

    fn look(&mut self) {
        self.take_answers();
        let of_names = NAMES.map(|name| (name, self.holders(name)));
        let of_locks = LOCKS.map(|name| (name, self.lock_holders(name)));
        for (name, holders) in of_names.into_iter().chain(of_locks) {
            assert!(holders.len() <= 1, "{name:?} is in two places: {holders:?}");
            // An owner has given up when it must, by its clock alone if its machine stands still.
            let now = self.world.now();
            let is_late = |at: &&str| {
                let still = self.still(at).map(|it| it.since);
                let since = self.down.get(*at).copied().into_iter().chain(still);
                since.min().is_some_and(|since| now > since + HALF)
            };
            let late: Vec<_> = holders.into_iter().filter(is_late).collect();
            assert_eq!(late, [""; 0], "{name:?} is kept without a renewal");
        }
        let ledger = self.ledger.lock().unwrap();
        assert_eq!(ledger.wrong, [""; 0], "an account is wrong");
    }

    /// Lets some time pass.
    pub(crate) fn run(&mut self, millis: usize) {
        let end = self.world.now() + Duration::from_millis(millis as u64);
        while self.world.now() < end {
            let next = end.min(self.world.now() + Duration::from_millis(200));
            self.world.run_for(next - self.world.now());
            self.look();
        }
    }

    pub(crate) fn claim(&mut self, at: &'static str, name: &'static str) {
        let machine = self.world.machine(at);
        let owner = Owner {
            at,
            name,
            names: self.names.borrow()[at].clone(),
            ledger: Arc::clone(&self.ledger),
            asked: 0,
        };
        let owner = machine.spawn(owner).unwrap();
        let own = owner.address().recipient();
        owner.send(Order::Begin(own)).unwrap();
        self.owners.push((at, owner.address().clone()));
    }

    /// Has an owner do something, if it lives.
    fn order(&mut self, order: Order) {
        if self.owners.is_empty() {
            return;
        }
        let place = self.world.choose(self.owners.len());
        let (at, owner) = &self.owners[place];
        let is_gone = !self.world.is_up(at) || {
            let _machine = self.world.machine(at);
            owner.send(order).is_err()
        };
        if is_gone {
            self.owners.swap_remove(place);
        }
    }

    /// Gives a machine's locks back, and wants no more.
    fn release(&mut self, at: &'static str) {
        let _machine = self.world.machine(at);
        self.held.retain(|(it, ..)| *it != at);
        self.wanted.retain(|it| it.at != at);
    }

    pub(crate) fn store_down(&mut self, at: &'static str) {
        self.world.store_down(at);
        let now = self.world.now();
        self.down.entry(at).or_insert(now);
    }

    pub(crate) fn store_up(&mut self, at: &'static str) {
        self.down.remove(at);
        self.world.store_up(at);
    }

    /// Returns how a machine stands still at the moment.
    fn still(&self, at: &str) -> Option<Still> {
        let still = self.still.get(at).copied();
        still.filter(|it| self.world.now() < it.until)
    }

    fn pause(&mut self, at: &'static str, time: Duration) {
        self.world.pause(at, time);
        let now = self.world.now();
        // Another pause takes the place of the first.
        let still = Still {
            since: self.still(at).map_or(now, |it| it.since),
            until: now + time,
            is_unseen: self.world.choose(2) == 1,
        };
        self.still.insert(at, still);
    }

    pub(crate) fn act(&mut self) {
        let world = self.world;
        let at = MACHINES[world.choose(MACHINES.len())];
        match world.choose(16) {
            0..=2 => self.claim(at, NAMES[world.choose(NAMES.len())]),
            3 | 4 => self.order(Order::Use),
            5 => self.order(Order::End),
            6 => self.store_down(at),
            7 => self.store_up(at),
            8 => self.pause(at, Duration::from_millis(world.choose(20_000) as u64)),
            9 => world.clock_rate(at, 0.7 + world.choose(600) as f64 / 1_000.0),
            10 => world.isolate(at, &others(at)),
            11 => {
                world.restart(at);
                self.still.remove(at);
                self.owners.retain(|(it, _)| *it != at);
                self.wanted.retain(|it| it.at != at);
                self.looks.retain(|it| it.at != at);
                self.held.retain(|(it, ..)| *it != at);
            }
            12 | 13 => self.lock(at, LOCKS[world.choose(LOCKS.len())]),
            14 => {
                let name = NAMES[world.choose(NAMES.len())];
                let look = self.ask(at, name, |names| names.find(name));
                self.looks.push(look);
            }
            _ => self.release(at),
        }
        self.run(world.choose(4_000));
    }

    /// Makes all whole. Then each name is free in time, and has a next owner.
    pub(crate) fn end(&mut self) {
        let world = self.world;
        for at in MACHINES {
            world.resume(at);
            self.still.remove(at);
            self.store_up(at);
            world.join(at, &others(at));
        }
        for (at, owner) in std::mem::take(&mut self.owners) {
            let _machine = world.machine(at);
            let _gone = owner.send(Order::End);
        }
        MACHINES.iter().for_each(|at| self.release(at));
        self.run(usize::try_from((WHOLE + HALF).as_millis()).unwrap());
        for name in NAMES {
            assert_eq!(self.holders(name), [""; 0], "all owners have ended");
        }
        self.claim("alpha", NAMES[0]);
        self.claim("gamma", NAMES[1]);
        let until = world.now() + Duration::from_secs(30);
        while self.holders(NAMES[0]) != ["alpha"] || self.holders(NAMES[1]) != ["gamma"] {
            assert!(world.now() < until, "a free name is not given");
            // An answer may be lost.
            if self.holders(NAMES[0]).is_empty() {
                self.claim("alpha", NAMES[0]);
            }
            if self.holders(NAMES[1]).is_empty() {
                self.claim("gamma", NAMES[1]);
            }
            self.run(5_000);
        }
        for (at, of) in MACHINES.into_iter().zip(LOCKS) {
            let until = world.now() + Duration::from_secs(30);
            while self.lock_holders(of) != [at] {
                assert!(world.now() < until, "a free lock is not given");
                if self.wanted.is_empty() {
                    self.lock(at, of);
                }
                self.run(1_000);
            }
        }
        self.ledger.lock().unwrap().check();
    }
}

fn others(at: &str) -> Vec<&'static str> {
    MACHINES.into_iter().filter(|it| *it != at).collect()
}
