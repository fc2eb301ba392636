//! Tests of a node, besides the cases of all engines: starts, names, other nodes, strangers.

use ganger_cluster::{Builder, Cluster, Foreign, NodeChange, Running, Twin};
use ganger_proc_api::{
    Actor, CommandError, Context, Envelope, ExitCause, ExitNotice, NodeName, Payload, StepOutput,
    StepResult, actor_fn,
};
use ganger_sched::{Address, Scheduler};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

struct Nodes {
    twin: Twin,
    _clock: Running,
}

impl Nodes {
    fn new() -> Self {
        let twin = Twin::new(3);
        twin.hints(true);
        let _clock = twin.run();
        Self { twin, _clock }
    }

    fn join(&self, name: &str, set: impl FnOnce(Builder) -> Builder) -> (Scheduler, Cluster) {
        let builder = Scheduler::builder().workers(2).node(name).quiet_failures();
        let scheduler = builder.start().unwrap();
        let node = Cluster::builder().cluster("test").engine(self.twin.port());
        let node = set(node).join(&scheduler).unwrap();
        (scheduler, node)
    }
}

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

#[derive(Debug)]
enum Seen {
    Foreign(Foreign),
    Node(NodeChange),
    Exit(ExitNotice),
}

impl From<NodeChange> for Seen {
    fn from(change: NodeChange) -> Self {
        Self::Node(change)
    }
}

/// Shows its messages to a test.
struct Witness(Sender<Seen>);

impl Actor for Witness {
    type Message = Seen;

    fn receive(&mut self, _: &Context, seen: Seen, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(seen)?)
    }

    fn exited(&mut self, _: &Context, notice: ExitNotice, _: &mut StepOutput) -> StepResult {
        Ok(self.0.send(Seen::Exit(notice))?)
    }
}

fn witness(scheduler: &Scheduler) -> (Address<Seen>, Receiver<Seen>) {
    let (shows, shown) = channel();
    let witness = scheduler.spawn(Witness(shows)).unwrap();
    (witness.address().clone(), shown)
}

// pins: B26
// case: 20
#[test]
fn a_process_is_started_elsewhere_with_its_name_its_monitor_and_its_first_message() {
    let nodes = Nodes::new();
    let (tell, told) = channel();
    let (beta, _) = nodes.join("beta", |node| {
        node.kind("adder.v1", move |spawner, first: u64| {
            let (mut sum, tell) = (first, tell.clone());
            let adder = actor_fn(move |_, number: u64, out: &mut StepOutput| {
                sum += number;
                tell.send(sum)?;
                if sum == 50 {
                    out.done(());
                }
                Ok(())
            });
            Ok(spawner.spawn(adder)?.pid())
        })
    });
    let (alpha, node) = nodes.join("alpha", |node| node);
    let (watcher, shown) = witness(&alpha);
    let adder = node.spawn_on(name("beta"), "adder.v1", 40_u64);
    let adder = adder
        .named("adder")
        .with_message(2_u64)
        .monitored_by(&watcher, 7);
    let pid = adder.call().wait_timeout(PATIENCE).unwrap();
    assert_eq!(pid.node(), Some(name("beta")));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(42));
    let found = node.whereis(name("beta"), "adder").wait_timeout(PATIENCE);
    assert_eq!(found.unwrap(), Some(pid));
    let found = node.whereis(name("beta"), "nothing").wait_timeout(PATIENCE);
    assert_eq!(found.unwrap(), None);
    beta.terminate(pid).unwrap();
    let Seen::Exit(notice) = shown.recv_timeout(PATIENCE).unwrap() else {
        panic!("no notice");
    };
    assert_eq!((notice.pid, notice.tag), (pid, 7));
    assert_eq!(notice.cause, ExitCause::Terminated);

    // Each ends with its first message, perhaps before the start is answered.
    for _ in 0..100 {
        let brief = node.spawn_on(name("beta"), "adder.v1", 48_u64);
        let brief = brief.with_message(2_u64).monitored_by(&watcher, 8);
        let pid = brief.call().wait_timeout(PATIENCE).unwrap();
        let Seen::Exit(notice) = shown.recv_timeout(PATIENCE).unwrap() else {
            panic!("no notice");
        };
        assert_eq!((notice.pid, notice.cause), (pid, ExitCause::Done));
    }
    assert!(shown.try_recv().is_err());
}

// pins: B26
// case: 21
#[test]
fn what_can_t_be_started_elsewhere_says_why() {
    let nodes = Nodes::new();
    let (_beta, _) = nodes.join("beta", |node| {
        node.kind("adder.v1", |spawner, _: u64| {
            Ok(spawner.spawn(actor_fn(|_, _: u64, _| Ok(())))?.pid())
        })
    });
    let (alpha, node) = nodes.join("alpha", |node| node);
    let (watcher, shown) = witness(&alpha);
    let ask = |kind: &str, input: Payload, process: &str| {
        let spawn = node.spawn_on(name("beta"), kind, input).named(process);
        spawn
            .monitored_by(&watcher, 7)
            .call()
            .wait_timeout(PATIENCE)
    };
    ask("adder.v1", 1_u64.into(), "adder").unwrap();
    let taken = ask("adder.v1", 1_u64.into(), "adder").unwrap_err();
    assert!(taken.to_string().contains("adder"), "{taken}");
    let unknown = ask("subtracter.v1", 1_u64.into(), "other").unwrap_err();
    assert!(unknown.to_string().contains("subtracter.v1"), "{unknown}");
    let wrong = ask("adder.v1", "one".into(), "other").unwrap_err();
    assert!(wrong.to_string().contains("u64"), "{wrong}");
    // Of what was not started nothing is told.
    assert!(shown.try_recv().is_err());
}

#[derive(Debug, Serialize, Deserialize)]
struct Order(u64);

// pins: B21
// case: 34
#[test]
fn a_type_that_the_receiver_does_not_know_arrives_as_foreign() {
    let nodes = Nodes::new();
    let (alpha, _) = nodes.join("alpha", |node| {
        node.types(|types| _ = types.add::<Order>("shop.order.v2"))
    });
    let (beta, _) = nodes.join("beta", |node| node);
    let (tell, told) = channel();
    let taker = ganger_proc_api::process_fn(move |_, events, _| {
        for event in events {
            if let Ok(message) = event.into_message() {
                tell.send(Seen::Foreign(message.take()?))?;
            }
        }
        Ok(())
    });
    let taker = beta.absolute(beta.spawn(taker).unwrap().pid());
    let order = Payload::any(Order(300));
    alpha
        .send(Envelope::new(None, taker, "order", order))
        .unwrap();
    let Seen::Foreign(foreign) = told.recv_timeout(PATIENCE).unwrap() else {
        panic!("no value");
    };
    assert_eq!(&*foreign.name, "shop.order.v2");
    assert_eq!(
        postcard::from_bytes::<Order>(&foreign.bytes).unwrap().0,
        300
    );
}

// pins: B24, B25
#[test]
fn nodes_are_told_to_their_watchers_as_they_come_and_leave() {
    let nodes = Nodes::new();
    let (alpha, node) = nodes.join("alpha", |node| node);
    let (watcher, shown) = witness(&alpha);
    let next = || match shown.recv_timeout(PATIENCE).unwrap() {
        Seen::Node(change) => change,
        other => panic!("{other:?}"),
    };
    node.watch_nodes(watcher.recipient());
    let (_beta, other) = nodes.join("beta", |node| node.peers(["alpha"]));
    let NodeChange::Up {
        node: up,
        incarnation,
    } = next()
    else {
        panic!("it is not up");
    };
    assert_eq!((up.as_str(), incarnation), ("beta", other.incarnation()));
    let (late, late_shown) = witness(&alpha);
    node.watch_nodes(late.recipient());
    let snapshot = late_shown.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(snapshot, Seen::Node(NodeChange::Up { .. })));
    other.leave(Duration::from_secs(10));
    let NodeChange::Down {
        node: down,
        undelivered,
        ..
    } = next()
    else {
        panic!("it is up");
    };
    assert_eq!((down.as_str(), undelivered), ("beta", 0));
    assert!(node.nodes().is_empty());
}

// pins: B20
// case: 33
#[test]
fn a_node_with_another_cookie_is_no_peer() {
    let nodes = Nodes::new();
    let (alpha, node) = nodes.join("alpha", |node| node.cookie("ours"));
    let (beta, other) = nodes.join("beta", |node| node.cookie("theirs").peers(["alpha"]));
    let (gamma, third) = nodes.join("gamma", |node| node.cookie("ours").peers(["alpha"]));
    let (watcher, shown) = witness(&alpha);
    node.watch_nodes(watcher.recipient());
    let seen = shown.recv_timeout(PATIENCE).unwrap();
    let Seen::Node(NodeChange::Up { node: up, .. }) = seen else {
        panic!("{seen:?}");
    };
    assert_eq!(up.as_str(), "gamma");
    assert!(other.nodes().is_empty());
    assert!(
        node.stats(name("beta"))
            .is_none_or(|stats| stats.round_trip.is_none())
    );
    let asked = third
        .whereis(name("alpha"), "nothing")
        .wait_timeout(PATIENCE);
    assert_eq!(asked.unwrap(), None);
    let unasked = other.whereis(name("alpha"), "nothing");
    let unasked = unasked.wait_timeout(Duration::from_millis(300));
    assert!(matches!(unasked, Err(CommandError::Timeout)));
    drop((beta, gamma));
}
