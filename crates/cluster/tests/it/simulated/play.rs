//! Nodes of a cluster on machines of a simulation, which crash, start again, stand still and lose
//! each other, over any engine.

use super::account::{Account, Life};
use ganger_cluster::{Cluster, Engine, NodeChange, Settings};
use ganger_proc_api::{
    Context, Envelope, Event, Events, NodeName, Payload, Pid, Process, StepOutput, StepResult,
    actor_fn,
};
use ganger_sim::{Faults, Rt, Sim, World};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

/// The numbers of kinds of acts: of the kinds that end no session, and of all.
pub(crate) const QUIET: usize = 6;
pub(crate) const ALL: usize = 9;

type Shared = Arc<Mutex<Account>>;

/// Counts its messages.
struct Sink(Shared, Life);

impl Process for Sink {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            if let Event::Message(message) = event
                && let Some(message) = message.payloads.into_first().as_u64()
            {
                let own = absolute(self.1, ctx.pid());
                self.0.lock().unwrap().received(own, message);
            }
        }
        Ok(())
    }
}

/// Monitors the processes named in its messages, and counts the notices.
struct Watcher(Shared, Life);

impl Process for Watcher {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    if let Some(pid) = message.payloads.into_first().as_pid() {
                        let tag = self.0.lock().unwrap().monitors(self.1, pid);
                        ctx.monitor(pid, tag)?;
                    }
                }
                Event::Exit(notice) => {
                    let mut account = self.0.lock().unwrap();
                    // The own node's PIDs have no node.
                    let of = match notice.pid.node() {
                        Some(_) => notice.pid,
                        None => absolute(self.1, notice.pid),
                    };
                    account.told(notice.tag, of, notice.cause.clone());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn absolute((name, _): Life, pid: Pid) -> Pid {
    pid.with_node(NodeName::new(name).ok())
}

/// The machines, and their state.
pub(crate) struct Play<'w, 'a> {
    world: &'w World<'a>,
    pub(crate) account: Shared,
    /// The present life of each machine, and the sink of each life.
    lives: Vec<Life>,
    sinks: Vec<Pid>,
    /// All sinks of all lives.
    known: Vec<(Life, Pid)>,
}

/// Runs a machine's program at its start.
fn boot(machine: &Rt<'_>, life: Life, engine: impl Engine + 'static, account: &Shared) {
    // Small frames: several are under way at once, and some of them are lost or overtaken.
    let mut settings = Settings::default();
    settings.frame = 256;
    let cluster = Cluster::builder()
        .cookie("secret")
        .settings(settings)
        .engine(engine)
        .peers(NAMES.into_iter().filter(|it| *it != life.0))
        .join(machine)
        .unwrap();
    let own = Arc::clone(account);
    let changes = actor_fn(move |_, change: NodeChange, _| {
        own.lock().unwrap().changed(life, &change);
        Ok(())
    });
    let changes = machine.spawn(changes).unwrap();
    cluster.watch_nodes(changes.address().recipient());
    let sink = Sink(Arc::clone(account), life);
    machine.spawner().named("sink").spawn(sink).unwrap();
    let watcher = Watcher(Arc::clone(account), life);
    machine.spawner().named("watcher").spawn(watcher).unwrap();
}

impl<'w, 'a> Play<'w, 'a> {
    /// Starts the machines, each with its engine.
    pub(crate) fn start<E: Engine + 'static>(
        world: &'w World<'a>,
        engine: impl Fn(&'static str) -> E + Clone + 'static,
    ) -> Self {
        let account = Shared::default();
        for name in NAMES {
            let (engine, account) = (engine.clone(), Arc::clone(&account));
            let lives = std::cell::Cell::new(0);
            world.start(name, move |machine| {
                boot(machine, (name, lives.get()), engine(name), &account);
                lives.set(lives.get() + 1);
            });
        }
        let mut play = Self {
            world,
            account,
            lives: NAMES.map(|name| (name, 0)).into(),
            sinks: Vec::new(),
            known: Vec::new(),
        };
        for place in 0..NAMES.len() {
            let sink = play.sink(place);
            play.sinks.push(sink);
        }
        play
    }

    /// Returns the sink of a machine's present life.
    fn sink(&mut self, place: usize) -> Pid {
        let life = self.lives[place];
        let sink = self.world.machine(life.0).whereis("sink").unwrap();
        let sink = absolute(life, sink);
        self.known.push((life, sink));
        sink
    }

    fn send(&self, from: usize, (to, target): (Life, Pid), count: usize) {
        let from = self.lives[from];
        let machine = self.world.machine(from.0);
        for _ in 0..count {
            let message = self.account.lock().unwrap().next(from, to, target);
            let envelope = Envelope::new(None, target, "number", message);
            if machine.send(envelope).is_ok() {
                self.account.lock().unwrap().accepted(message);
            }
        }
    }

    fn monitor(&self, by: usize, of: Pid) {
        let machine = self.world.machine(NAMES[by]);
        let watcher = machine.whereis("watcher").unwrap();
        let envelope = Envelope::new(None, watcher, "monitor", Payload::from(of));
        machine.send(envelope).unwrap();
    }

    /// Starts a process for others to monitor, which ends soon.
    fn victim(&self, place: usize) -> Pid {
        let life = self.lives[place];
        let machine = self.world.machine(life.0);
        let victim = machine.spawn(actor_fn(|_, (): (), _| Ok(()))).unwrap();
        absolute(life, victim.pid())
    }

    fn kill(&self, victim: Pid) {
        let name = victim.node().unwrap();
        let machine = self.world.machine(name.as_str());
        if machine.terminate(victim).is_ok() {
            self.account.lock().unwrap().is_gone(victim);
        }
    }

    fn restart(&mut self, place: usize) {
        let (name, lives) = self.lives[place];
        let gone: Vec<_> = (self.known.iter())
            .filter(|(life, _)| *life == (name, lives))
            .map(|(_, pid)| *pid)
            .collect();
        gone.iter()
            .for_each(|pid| self.account.lock().unwrap().is_gone(*pid));
        self.world.restart(name);
        self.lives[place] = (name, lives + 1);
        self.sinks[place] = self.sink(place);
    }

    pub(crate) fn run(&self, millis: u64) {
        self.world.run_for(Duration::from_millis(millis));
        let account = self.account.lock().unwrap();
        assert_eq!(account.wrong(), None, "an account is wrong");
    }

    fn pause(&self, most: usize) {
        self.run(self.world.choose(most) as u64);
    }

    /// Does one act of the test of the first `kinds`, and lets some time pass.
    pub(crate) fn act(&mut self, kinds: usize) {
        let world = self.world;
        let one = world.choose(NAMES.len());
        let other = (one + 1 + world.choose(NAMES.len() - 1)) % NAMES.len();
        match world.choose(kinds) {
            0..=2 => {
                let target = self.known[world.choose(self.known.len())];
                if target.0.0 != NAMES[one] {
                    self.send(one, target, 1 + world.choose(20));
                }
            }
            3 => self.send(one, (self.lives[other], self.sinks[other]), 10),
            4 => {
                let (_, pid) = self.known[world.choose(self.known.len())];
                self.monitor(one, pid);
            }
            5 => {
                let victim = self.victim(other);
                self.monitor(one, victim);
                self.pause(200);
                self.kill(victim);
            }
            6 => {
                world.cut(NAMES[one], NAMES[other]);
                self.pause(12_000);
                world.heal(NAMES[one], NAMES[other]);
            }
            7 => {
                let time = world.choose(12_000) as u64;
                world.pause(NAMES[one], Duration::from_millis(time));
            }
            _ => self.restart(one),
        }
        self.pause(1_000);
    }

    /// Makes all whole and quiet, and looks at the accounts.
    pub(crate) fn end(&mut self) {
        for name in NAMES {
            self.world.resume(name);
        }
        self.run(40_000);
        let lives = self.lives.clone();
        for from in 0..NAMES.len() {
            for to in (0..NAMES.len()).filter(|to| *to != from) {
                self.send(from, (lives[to], self.sinks[to]), 1);
            }
        }
        self.run(20_000);
        let account = self.account.lock().unwrap();
        let wrong = account.wrong_at_end(&lives);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

pub(crate) fn sim() -> Sim {
    // The clock does not jump: each jump would end all sessions.
    Sim::new(0).faults(Faults {
        clock_jumps: 0,
        ..Faults::some()
    })
}
