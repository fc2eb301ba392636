//! The machines of a simulation as a harness of the cases of all engines.

use super::play::sim;
use ganger_cluster::conformance::{CHILD, Ground, Harness, Sends, child, is_full, settings, types};
use ganger_cluster::{Cluster, Engine, Settings};
use ganger_proc_api::NodeName;
use ganger_sched::{Builder, Handle};
use ganger_sim::World;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// A world: each wait of a case moves its machines.
#[derive(Clone, Copy)]
pub(crate) struct InWorld<'w, 'a>(&'w World<'a>);

impl Ground for InWorld<'_, '_> {
    fn wait(self, time: Duration, has_come: &mut dyn FnMut() -> bool) -> bool {
        let end = self.0.now().saturating_add(time);
        while !has_come() {
            if self.0.now() >= end || !self.0.step() {
                return has_come();
            }
        }
        true
    }

    fn breathe(self) {
        for _ in 0..self.0.choose(8) {
            self.0.step();
        }
    }

    fn stop(self, scheduler: &Handle, deadline: Duration) {
        let name = scheduler.node_name().unwrap();
        drop(self.0.machine(name.as_str()).stop(deadline));
    }

    /// Returns bytes by the hundred thousand, and fewer of all else.
    fn count(self, gate: u64, _: u64) -> u64 {
        match gate {
            0..100_000 => gate.min(200),
            _ => gate / 16,
        }
    }

    fn at_once<T: Send>(self, [one, other]: [&(dyn Fn() -> T + Sync); 2]) -> [T; 2] {
        if self.0.choose(2) == 0 {
            let first = one();
            self.breathe();
            return [first, other()];
        }
        let first = other();
        self.breathe();
        [one(), first]
    }

    fn finish(self, mut sends: Vec<Sends>) {
        while !sends.is_empty() {
            let place = self.0.choose(sends.len());
            if !sends[place].send_next(self) {
                sends.swap_remove(place);
            }
            self.breathe();
        }
    }
}

/// The carrier between the machines.
pub(crate) trait Wires: Clone + 'static {
    type Engine: Engine + 'static;

    /// Begins to carry. Calm: nothing is late enough to end a session early.
    fn start(world: &World<'_>, is_calm: bool) -> Self;

    /// Adds a machine's part.
    fn add_to(&self, builder: Builder) -> Builder;

    fn engine(&self, name: &'static str) -> Self::Engine;

    /// Has the wires lose, or break, from now on.
    fn disturb(&self);

    /// Has the wires pass no more than so many bytes a second, if they can.
    fn throttle(&self, bytes: u64);
}

const NAMES: [&str; 2] = ["near", "far"];

type Joined = Rc<RefCell<BTreeMap<&'static str, Cluster>>>;

/// Two machines with nodes.
pub(crate) struct Simulated<'w, 'a, W> {
    ground: InWorld<'w, 'a>,
    wires: W,
    handles: [Handle; 2],
    nodes: [Cluster; 2],
    /// The node of each machine's present life.
    joined: Joined,
}

impl<'w, 'a, W: Wires> Simulated<'w, 'a, W> {
    fn with(ground: InWorld<'w, 'a>, dead: Option<Duration>) -> Self {
        let (world, joined) = (ground.0, Joined::default());
        let wires = W::start(world, dead.is_some());
        let own = wires.clone();
        world.builder(move |builder| settings(own.add_to(builder)));
        for (name, other) in [("near", "far"), ("far", "near")] {
            let (wires, joined) = (wires.clone(), Rc::clone(&joined));
            world.start(name, move |machine| {
                let mut settings = Settings::default();
                settings.dead = dead.unwrap_or(settings.dead);
                let node = Cluster::builder()
                    .cookie("secret")
                    .settings(settings)
                    .engine(wires.engine(name))
                    .peers([other])
                    .types(types)
                    .kind(CHILD, child)
                    .join(machine)
                    .unwrap();
                joined.borrow_mut().insert(name, node);
            });
        }
        let handles = NAMES.map(|name| world.machine(name).handle());
        let nodes = NAMES.map(|name| joined.borrow()[name].clone());
        let harness = Self {
            ground,
            wires,
            handles,
            nodes,
            joined,
        };
        ground.eventually("the nodes are connected", || {
            harness.nodes.iter().all(|node| node.nodes().len() == 1)
        });
        harness
    }
}

impl<'w, 'a, W: Wires> Harness for Simulated<'w, 'a, W> {
    type Ground = InWorld<'w, 'a>;

    fn start(ground: Self::Ground) -> Self {
        Self::with(ground, None)
    }

    fn start_frail(ground: Self::Ground, dead: Duration) -> Option<Self> {
        Some(Self::with(ground, Some(dead)))
    }

    fn ground(&self) -> Self::Ground {
        self.ground
    }

    fn schedulers(&self) -> [&Handle; 2] {
        self.handles.each_ref()
    }

    fn clusters(&self) -> Option<[&Cluster; 2]> {
        Some(self.nodes.each_ref())
    }

    fn disturb(&self) -> bool {
        self.wires.disturb();
        true
    }

    fn cut(&self) -> bool {
        self.ground.0.isolate("near", &["far"]);
        true
    }

    fn pause_far(&self, is_paused: bool) {
        match is_paused {
            true => self.ground.0.pause("far", Duration::from_secs(3_600)),
            false => self.ground.0.resume("far"),
        }
    }

    fn cut_way(&self, is_cut: bool) {
        match is_cut {
            true => self.ground.0.cut("near", "far"),
            false => self.ground.0.heal("near", "far"),
        }
    }

    fn throttle(&self, bytes: u64) {
        self.wires.throttle(bytes);
    }

    fn entries(&self) -> Option<[usize; 2]> {
        let [near, far] = NAMES.map(|name| NodeName::new(name).unwrap());
        let [at_near, at_far] = &self.nodes;
        Some([at_near.open_entries(far), at_far.open_entries(near)])
    }

    fn restart_far(&mut self) -> bool {
        self.ground.0.restart("far");
        self.handles[1] = self.ground.0.machine("far").handle();
        self.nodes[1] = self.joined.borrow()["far"].clone();
        let (near, far) = (&self.nodes[0], &self.nodes[1]);
        self.ground.eventually("the nodes are connected", || {
            let up = near.nodes();
            up.iter().any(|(_, it)| *it == far.incarnation())
        });
        true
    }
}

/// Calls a case in a world of each seed.
pub(crate) fn in_worlds(case: impl Fn(InWorld<'_, '_>)) {
    let seeds = if is_full() { 100 } else { 3 };
    let sim = sim().max_moves(5_000_000);
    sim.check_worlds(seeds, |world| case(InWorld(world)));
}
