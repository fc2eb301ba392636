//! The engine's own code on machines of a simulation, over simulated sockets.

#[path = "../../../cluster/tests/it/simulated/account.rs"]
mod account;
/// The cases of all engines.
mod cases {
    use super::OverLan;
    use super::harness::{Simulated, in_worlds};

    ganger_cluster::cases!(within in_worlds, Simulated<'_, '_, OverLan>);
}
#[path = "../../../cluster/tests/it/simulated/harness.rs"]
mod harness;
#[path = "../../../cluster/tests/it/simulated/owners.rs"]
mod owners;
/// The machines of the tests over a twin.
#[path = "../../../cluster/tests/it/simulated/play.rs"]
mod play;

use crate::lossy::Lossy;
use ganger_cluster::{Cluster, NodeChange};
use ganger_cluster_direct::Direct;
use ganger_net::sim::{Faults, Lan};
use ganger_proc_api::{
    Context, Envelope, Event, Events, ExitCause, NodeName, Payload, Pid, Process, StepOutput,
    StepResult, actor_fn,
};
use ganger_sched::Builder;
use ganger_sim::{Rt, World};
use harness::Wires;
use play::{ALL, NAMES, Play, QUIET, sim};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// The observations, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Number(&'static str, u64),
    Told(&'static str, Pid, ExitCause),
    Down(&'static str, String),
}

type Log = Arc<Mutex<Vec<Seen>>>;

/// Notes its messages, and monitors the processes named in them.
struct Desk(&'static str, Log);

impl Process for Desk {
    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, _: &mut StepOutput) -> StepResult {
        for event in events {
            match event {
                Event::Message(message) => {
                    let first = message.payloads.into_first();
                    if let Some(number) = first.as_u64() {
                        self.1.lock().unwrap().push(Seen::Number(self.0, number));
                    }
                    if let Some(pid) = first.as_pid() {
                        ctx.monitor(pid, 1)?;
                    }
                }
                Event::Exit(notice) => {
                    let told = Seen::Told(self.0, notice.pid, notice.cause.clone());
                    self.1.lock().unwrap().push(told);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn boot(machine: &Rt<'_>, name: &'static str, log: &Log) {
    let engine = engine(name);
    let cluster = Cluster::builder().engine(engine).join(machine).unwrap();
    let changes = Arc::clone(log);
    let changes = actor_fn(move |_, change: NodeChange, _| {
        if let NodeChange::Down { node, .. } = change {
            let down = Seen::Down(name, node.to_string());
            changes.lock().unwrap().push(down);
        }
        Ok(())
    });
    let changes = machine.spawn(changes).unwrap();
    cluster.watch_nodes(changes.address().recipient());
    let desk = Desk(name, Arc::clone(log));
    machine.spawner().named("desk").spawn(desk).unwrap();
}

/// Returns the engine of a machine.
fn engine(name: &str) -> Direct {
    let place = NAMES.iter().position(|it| *it == name).unwrap() + 1;
    Direct::listen(format!("10.0.0.{place}:7447"))
        .seeds(["10.0.0.1:7447", "10.0.0.2:7447"])
        .cookie("secret")
        .insecure()
}

fn network(world: &World<'_>, faults: Faults) -> Lan {
    let lan = Lan::new();
    lan.set_faults(world.choose(1 << 20) as u64, faults);
    let own = lan.clone();
    world.builder(move |builder| own.add_to(builder));
    world.carrier(lan.clone());
    lan
}

/// Simulated sockets, for the cases of all engines.
#[derive(Clone)]
struct OverLan {
    lan: Lan,
    loses: Arc<AtomicBool>,
    seed: u64,
}

impl Wires for OverLan {
    type Engine = Lossy;

    fn start(world: &World<'_>, _: bool) -> Self {
        Self {
            lan: network(world, Faults::some()),
            loses: Arc::default(),
            seed: world.choose(1 << 20) as u64,
        }
    }

    fn add_to(&self, builder: Builder) -> Builder {
        self.lan.add_to(builder)
    }

    fn engine(&self, name: &'static str) -> Lossy {
        let place = if name == "near" { 1 } else { 2 };
        let engine = Direct::listen(format!("10.0.0.{place}:7447"))
            .seeds(["10.0.0.1:7447"])
            .cookie("secret")
            .insecure();
        Lossy::new(engine, Arc::clone(&self.loses), self.seed + place)
    }

    fn disturb(&self) {
        self.loses.store(true, Ordering::Relaxed);
    }

    /// Does nothing: these sockets have a latency alone.
    fn throttle(&self, _: u64) {}
}

fn start(world: &World<'_>) -> (Lan, Log) {
    let (lan, log) = (network(world, Faults::some()), Log::default());
    for name in NAMES {
        let log = Arc::clone(&log);
        world.start(name, move |machine| boot(machine, name, &log));
    }
    world.run_for(5 * SECOND);
    (lan, log)
}

fn desk(world: &World<'_>, name: &str) -> Pid {
    let desk = world.machine(name).whereis("desk").unwrap();
    desk.with_node(NodeName::new(name).ok())
}

fn send(world: &World<'_>, from: &str, to: Pid, what: impl Into<Payload>) {
    let envelope = Envelope::new(None, to, "what", what.into());
    world.machine(from).send(envelope).unwrap();
}

fn has(log: &Log, wanted: &Seen) -> bool {
    log.lock().unwrap().contains(wanted)
}

// pins: B1, B2, B3, B5, B13, B41
// case: 1, 4, 24, 25, 26, 27, 28, 29
#[test]
fn messages_and_notices_keep_their_promises_over_simulated_sockets() {
    let counts = Mutex::new([0; 3]);
    sim().check_worlds(10, |world| {
        // Some connections break in the middle of a frame.
        let _lan = network(world, Faults::some().resets(1_000));
        let mut play = Play::start(world, engine);
        for _ in 0..4 + world.choose(16) {
            play.act(ALL);
        }
        play.end();
        let account = play.account.lock().unwrap();
        let [received, _, told] = account.counts();
        let own = [received, account.downs(), told];
        let mut counts = counts.lock().unwrap();
        (counts.iter_mut().zip(own)).for_each(|(all, own)| *all += own);
    });
    let counts = *counts.lock().unwrap();
    assert!(counts.iter().all(|it| *it > 0), "{counts:?}");
}

// pins: B1, B2, B3
// case: 1, 4
#[test]
fn connections_that_are_late_and_partial_lose_no_message() {
    sim().check_worlds(5, |world| {
        let _lan = network(world, Faults::some());
        let mut play = Play::start(world, engine);
        for _ in 0..15 {
            play.act(QUIET);
        }
        play.end();
        let account = play.account.lock().unwrap();
        assert_eq!(account.downs(), 0, "a session ends");
        assert_eq!(account.counts()[1], 0, "messages are missing");
    });
}

// pins: B1, B3, B13, B15
// case: 1, 24, 25, 27
#[test]
fn nodes_meet_lose_each_other_and_meet_again_over_simulated_sockets() {
    sim().check_worlds(10, |world| {
        let (_lan, log) = start(world);
        let (alpha, beta) = (desk(world, "alpha"), desk(world, "beta"));
        for number in 0..10_u64 {
            send(world, "alpha", beta, number);
            send(world, "gamma", alpha, number);
        }
        send(world, "alpha", desk(world, "alpha"), beta);
        world.run_until(10 * SECOND, || has(&log, &Seen::Number("beta", 9)));
        world.run_until(10 * SECOND, || has(&log, &Seen::Number("alpha", 9)));
        let numbers: Vec<_> = (log.lock().unwrap().iter())
            .filter_map(|it| match it {
                Seen::Number("beta", number) => Some(*number),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        world.run_for(SECOND);
        match world.choose(3) {
            0 => world.crash("beta"),
            1 => world.isolate("beta", &["alpha", "gamma"]),
            _ => world.pause("beta", 20 * SECOND),
        }
        let told = Seen::Told("alpha", beta, ExitCause::NoConnection);
        world.run_until(20 * SECOND, || has(&log, &told));
        let down = Seen::Down("alpha", "beta".into());
        world.run_until(SECOND, || has(&log, &down));
        let is_up = world.is_up("beta");
        match is_up {
            true => {
                world.join("beta", &["alpha", "gamma"]);
                world.resume("beta");
            }
            false => world.restart("beta"),
        }
        world.run_for(20 * SECOND);
        let again = desk(world, "beta");
        assert_eq!(again == beta, is_up, "a PID of before finds nobody");
        send(world, "alpha", again, 42_u64);
        world.run_until(20 * SECOND, || has(&log, &Seen::Number("beta", 42)));
        if !is_up {
            send(world, "alpha", alpha, beta);
            let stale = Seen::Told("alpha", beta, ExitCause::NotFound);
            world.run_until(20 * SECOND, || has(&log, &stale));
        }
        let told = log.lock().unwrap().clone();
        let told = told.iter().filter(|it| matches!(it, Seen::Told(..)));
        assert_eq!(told.count(), if is_up { 1 } else { 2 });
    });
}

#[test]
fn a_seed_repeats_the_engine() {
    for seed in 0..2 {
        let run = || {
            sim().seed(seed).run_world(|world| {
                let _started = start(world);
                world.restart("gamma");
                world.run_for(5 * SECOND);
            })
        };
        let (first, second) = (run(), run());
        assert_eq!(first.decisions, second.decisions, "seed {seed}");
        assert_eq!(first.trace.to_string(), second.trace.to_string());
    }
}

// pins: B33, B34
// case: 37
#[test]
fn histories_of_names_and_locks_are_linearizable_over_simulated_sockets() {
    let locks = Mutex::new([0; 2]);
    sim().check_worlds(5, |world| {
        let _lan = network(world, Faults::some());
        let mut play = owners::Play::start(world, engine);
        for _ in 0..10 + world.choose(20) {
            play.act();
        }
        play.end();
        let own = play.ledger.lock().unwrap().locks;
        let mut locks = locks.lock().unwrap();
        (locks.iter_mut().zip(own)).for_each(|(all, own)| *all += own);
    });
    let locks = *locks.lock().unwrap();
    assert!(locks.iter().all(|it| *it > 0), "{locks:?}");
}
