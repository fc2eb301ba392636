//! Strong names on machines of a simulation, which crash, start again, stand still, lose each other
//! and their store, while their clocks run at different rates.

use super::play::sim;
use ganger_cluster::{Cluster, FencingToken, NameLost, StoreFaults, StrongNames, Twin, TwinStore};
use ganger_proc_api::{Actor, Completion, Context, NodeName, Pid, StepOutput, StepResult, Tag};
use ganger_sched::{Address, Recipient};
use ganger_sim::World;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MACHINES: [&str; 3] = ["alpha", "beta", "gamma"];
const NAMES: [&str; 2] = ["billing", "shipping"];

/// An owner that can't renew its lease of 10 s has the name for 5 s by its own clock, whose rate is
/// 0.7 at least.
const HALF: Duration = Duration::from_millis(7_200);

/// The slowest clock ends a lease after so long: 10 s / 0.7.
const WHOLE: Duration = Duration::from_millis(14_300);

/// The owners' acts and notices.
#[derive(Default)]
struct Ledger {
    /// The greatest token with which each name was used.
    greatest: BTreeMap<&'static str, FencingToken>,
    /// How often each owner was told of its loss.
    lost: BTreeMap<Pid, u32>,
    granted: usize,
    refused: usize,
    used: usize,
    wrong: Vec<String>,
}

type Shared = Arc<Mutex<Ledger>>;

impl Ledger {
    /// What a resource outside of the cluster sees: no token may go back.
    fn uses(&mut self, by: &str, name: &'static str, token: FencingToken) {
        self.used += 1;
        let greatest = self.greatest.entry(name).or_insert(token);
        if token < *greatest {
            self.wrong.push(format!(
                "{by} uses {name:?} by {token:?}, behind {greatest:?}"
            ));
        }
        *greatest = token.max(*greatest);
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
}

enum Order {
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
            self.ledger.lock().unwrap().uses(self.at, self.name, token);
        }
    }
}

impl Actor for Owner {
    type Message = Order;

    fn receive(&mut self, ctx: &Context, order: Order, out: &mut StepOutput) -> StepResult {
        match order {
            Order::Begin(own) => {
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
        if answer.take::<FencingToken>().is_ok() {
            self.ledger.lock().unwrap().granted += 1;
            self.uses();
        } else {
            self.ledger.lock().unwrap().refused += 1;
            out.done(());
        }
        Ok(())
    }
}

/// The machines, and their owners.
struct Play<'w, 'a> {
    world: &'w World<'a>,
    ledger: Shared,
    /// Of the present life of each machine.
    names: Rc<RefCell<BTreeMap<&'static str, StrongNames>>>,
    owners: Vec<(&'static str, Address<Order>)>,
    /// Since when a machine has not reached the store.
    down: BTreeMap<&'static str, Duration>,
}

impl<'w, 'a> Play<'w, 'a> {
    fn start(world: &'w World<'a>) -> Self {
        let (twin, store) = (Twin::new(0), TwinStore::new(0));
        let mut faults = StoreFaults::default();
        faults.slow = Duration::from_millis(1 + world.choose(2_000) as u64);
        faults.lost = 50;
        store.faults(faults);
        // The clock of the store, as any, runs at 0.7 to 1.3 of the time.
        store.skew(700 + u32::try_from(world.choose(600)).unwrap());
        world.carrier(twin.clone());
        world.carrier(store.clone());
        let names = Rc::<RefCell<BTreeMap<_, _>>>::default();
        for name in MACHINES {
            let (twin, store, names) = (twin.clone(), store.clone(), Rc::clone(&names));
            world.start(name, move |machine| {
                let node = Cluster::builder()
                    .cookie("secret")
                    .engine(twin.port())
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
            down: BTreeMap::new(),
        }
    }

    /// Which machine has a name at this moment, each by its own clock.
    fn holders(&self, name: &str) -> Vec<&'static str> {
        let has = |at: &&'static str| {
            self.world.is_up(at) && {
                // The clock of this machine is the test's.
                let _machine = self.world.machine(at);
                self.names.borrow()[at].token(name).is_some()
            }
        };
        MACHINES.into_iter().filter(has).collect()
    }

    fn look(&self) {
        for name in NAMES {
            let holders = self.holders(name);
            assert!(holders.len() <= 1, "{name:?} is in two places: {holders:?}");
            // An owner has given up when it must.
            let is_late = |at: &&str| {
                let since = self.down.get(*at);
                since.is_some_and(|since| self.world.now() > *since + HALF)
            };
            let late: Vec<_> = holders.into_iter().filter(is_late).collect();
            assert_eq!(late, [""; 0], "{name:?} is kept without the store");
        }
        let ledger = self.ledger.lock().unwrap();
        assert_eq!(ledger.wrong, [""; 0], "an account is wrong");
    }

    /// Some time passes.
    fn run(&self, millis: usize) {
        let end = self.world.now() + Duration::from_millis(millis as u64);
        while self.world.now() < end {
            let next = end.min(self.world.now() + Duration::from_millis(200));
            self.world.run_for(next - self.world.now());
            self.look();
        }
    }

    fn claim(&mut self, at: &'static str, name: &'static str) {
        let machine = self.world.machine(at);
        let owner = Owner {
            at,
            name,
            names: self.names.borrow()[at].clone(),
            ledger: Arc::clone(&self.ledger),
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

    fn store_down(&mut self, at: &'static str) {
        self.world.store_down(at);
        let now = self.world.now();
        self.down.entry(at).or_insert(now);
    }

    fn store_up(&mut self, at: &'static str) {
        self.down.remove(at);
        self.world.store_up(at);
    }

    fn act(&mut self) {
        let world = self.world;
        let at = MACHINES[world.choose(MACHINES.len())];
        match world.choose(12) {
            0..=2 => self.claim(at, NAMES[world.choose(NAMES.len())]),
            3 | 4 => self.order(Order::Use),
            5 => self.order(Order::End),
            6 => self.store_down(at),
            7 => self.store_up(at),
            8 => world.pause(at, Duration::from_millis(world.choose(20_000) as u64)),
            9 => world.clock_rate(at, 0.7 + world.choose(600) as f64 / 1_000.0),
            10 => world.isolate(at, &others(at)),
            _ => {
                world.restart(at);
                self.owners.retain(|(it, _)| *it != at);
            }
        }
        self.run(world.choose(4_000));
    }

    /// All becomes whole. Then each name is free in time, and has a next owner.
    fn end(&mut self) {
        let world = self.world;
        for at in MACHINES {
            world.resume(at);
            self.store_up(at);
            world.join(at, &others(at));
        }
        for (at, owner) in std::mem::take(&mut self.owners) {
            let _machine = world.machine(at);
            let _gone = owner.send(Order::End);
        }
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
    }
}

fn others(at: &str) -> Vec<&'static str> {
    MACHINES.into_iter().filter(|it| *it != at).collect()
}

// pins: B33, B34
// case: 37
#[test]
fn a_strong_name_is_in_one_place_whatever_happens_to_machines_and_their_store() {
    let counts = Mutex::new([0; 4]);
    sim().check_worlds(20, |world| {
        let mut play = Play::start(world);
        for _ in 0..10 + world.choose(20) {
            play.act();
        }
        play.end();
        let ledger = play.ledger.lock().unwrap();
        let lost = ledger.lost.len();
        let own = [ledger.granted, ledger.refused, ledger.used, lost];
        let mut counts = counts.lock().unwrap();
        counts
            .iter_mut()
            .zip(own)
            .for_each(|(all, own)| *all += own);
    });
    let counts = *counts.lock().unwrap();
    assert!(counts.iter().all(|it| *it > 0), "{counts:?}");
}

// pins: B34
// case: 37
#[test]
fn while_the_store_is_down_a_name_is_held_for_half_a_lease_and_then_by_nobody() {
    sim().check_worlds(10, |world| {
        let mut play = Play::start(world);
        play.claim("alpha", NAMES[0]);
        world.run_until(Duration::from_secs(30), || {
            play.holders(NAMES[0]) == ["alpha"] || play.ledger.lock().unwrap().refused > 0
        });
        if play.holders(NAMES[0]).is_empty() {
            // Its answer was lost.
            return;
        }
        let since = world.now();
        MACHINES.iter().for_each(|at| play.store_down(at));
        play.claim("beta", NAMES[0]);
        let (mut longest, refused) = (Duration::ZERO, play.ledger.lock().unwrap().refused);
        while world.now() < since + WHOLE + HALF {
            play.run(100);
            match &*play.holders(NAMES[0]) {
                [] => {}
                ["alpha"] => longest = world.now() - since,
                other => panic!("{other:?} has the name of a store that is down"),
            }
        }
        assert!(longest < HALF, "the name was kept for {longest:?}");
        assert!(
            play.ledger.lock().unwrap().refused > refused,
            "a claim was not refused"
        );
        assert_eq!(
            play.ledger.lock().unwrap().lost.len(),
            1,
            "the owner was told"
        );
        MACHINES.iter().for_each(|at| play.store_up(at));
        play.end();
    });
}

#[test]
fn a_seed_repeats_names_and_their_store() {
    for seed in 0..2 {
        let run = || {
            sim().seed(seed).run_world(|world| {
                let mut play = Play::start(world);
                (0..8).for_each(|_| play.act());
                play.end();
            })
        };
        let (first, second) = (run(), run());
        assert_eq!(first.decisions, second.decisions, "seed {seed}");
        assert_eq!(first.trace.to_string(), second.trace.to_string());
    }
}
