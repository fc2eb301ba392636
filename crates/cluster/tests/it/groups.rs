//! Groups and names of three nodes, whose processes and connections come and go at random; what a
//! broadcast costs; a peer that lies.

use bytes::Bytes;
use ganger_cluster::{
    Cluster, Engine, EngineError, EngineSink, Faults, Frame, Lane, NameRevoked, NodeChange, NodeId,
    Running, Settings, Twin, TwinEngine,
};
use ganger_link::{GroupNotice, JoinErrorKind, Lane as Notices, LinkContext as _};
use ganger_proc_api::{Context, Event, Message, NodeName, Pid, actor_fn, process_fn};
use ganger_sched::{ProcessHandle, Scheduler};
use std::collections::{BTreeMap, HashMap};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn id(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// Waits for a condition that comes for certain, but without a notice.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let (_tell, told) = channel::<()>();
    let pause = Duration::from_millis(2);
    let mut left = PATIENCE;
    while !is_so() {
        assert!(!left.is_zero(), "{what}");
        left = left.saturating_sub(pause);
        let _nothing_is_told = told.recv_timeout(pause);
    }
}

/// Starts a node whose sessions end after a second of silence.
fn join(name: &str, engine: impl Engine + 'static) -> (Scheduler, Cluster) {
    join_within(name, engine, Duration::from_secs(1))
}

fn join_within(name: &str, engine: impl Engine + 'static, dead: Duration) -> (Scheduler, Cluster) {
    let builder = Scheduler::builder().workers(2).node(name).quiet_failures();
    let scheduler = builder.start().unwrap();
    let mut settings = Settings::default();
    settings.dead = dead;
    settings.heartbeat = dead / 10;
    let node = Cluster::builder()
        .cookie("secret")
        .engine(engine)
        .settings(settings)
        .join(&scheduler);
    (scheduler, node.unwrap())
}

fn listener(scheduler: &Scheduler) -> (ProcessHandle<u64>, Receiver<u64>) {
    let (tell, told) = channel();
    let listener = actor_fn(move |_, number: u64, _| Ok(tell.send(number)?));
    (scheduler.spawn(listener).unwrap(), told)
}

/// Counts the messages in frames of data.
struct Counting {
    engine: TwinEngine,
    /// By the peer: the lengths of the messages.
    sent: Arc<Mutex<BTreeMap<NodeId, Vec<usize>>>>,
}

impl Engine for Counting {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        self.engine.start(me, sink)
    }

    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        if let Ok(Frame::Data { messages, .. }) = Frame::parse(&frame)
            && lane == Lane::Data
        {
            let lengths = messages.map(|it| it.body.len());
            let mut sent = self.sent.lock().unwrap();
            sent.entry(to.clone()).or_default().extend(lengths);
        }
        self.engine.send(to, lane, frame)
    }

    fn stop(&self, within: Duration) {
        self.engine.stop(within);
    }
}

// pins: B36
// case: 38
#[test]
fn a_member_has_left_when_its_end_is_told_whatever_else_is_to_be_told() {
    const OTHERS: usize = 10_000;
    let twin = Twin::new(5);
    twin.hints(true);
    let _clock = twin.run();
    let (near, at_near) = join_within("near", twin.port(), PATIENCE);
    let far = Scheduler::builder().workers(2).node("far").start().unwrap();
    let mut settings = Settings::default();
    settings.dead = PATIENCE;
    (settings.window, settings.queue) = (64 << 10, 64 << 10);
    let at_far = Cluster::builder()
        .cookie("secret")
        .engine(twin.port())
        .settings(settings)
        .join(&far);
    let at_far = at_far.unwrap();
    let there = listener(&far).0;
    let scope = at_far.groups("scope");
    scope.group("g").join(&there).unwrap();
    let pid = near.canonical(far.absolute(there.pid()));
    let group = at_near.groups("scope").group("g");
    eventually("the member is known", || group.members() == [pid]);
    let (begin, begun) = channel();
    let (tell, told) = channel();
    let watcher = process_fn(move |ctx: &Context, events, _| {
        for event in events {
            match event {
                Event::Message(_) => {
                    ctx.watch(pid, 1, Notices::Overtaking)?;
                    begin.send(())?;
                }
                Event::Exit(_) => tell.send(group.members())?,
                _ => {}
            }
        }
        Ok(())
    });
    let watcher = near.spawn(watcher).unwrap();
    watcher.send(Message::new("", ())).unwrap();
    begun.recv_timeout(PATIENCE).unwrap();
    // The monitor is there before later requests of its lane.
    let nobody = at_near.whereis(NodeName::new("far").unwrap(), "nobody");
    assert_eq!(nobody.wait_timeout(PATIENCE).unwrap(), None);
    // The end has its turn before the last of the entries.
    twin.pause(&id("near"));
    let (other, _numbers) = listener(&far);
    for number in 0..OTHERS {
        let group = scope.group(&format!("another group, and its number: {number}"));
        group.join(&other).unwrap();
    }
    far.terminate(there.pid()).unwrap();
    drop(there.wait_timeout(PATIENCE).unwrap());
    twin.resume(&id("near"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(vec![]));
}

// pins: B37
// case: 38
#[test]
fn a_broadcast_to_a_thousand_members_is_one_message_for_each_node() {
    const EACH: usize = 1_000;
    let twin = Twin::new(5);
    twin.hints(true);
    let _clock = twin.run();
    let sent = Arc::default();
    let engine = Counting {
        engine: twin.port(),
        sent: Arc::clone(&sent),
    };
    let (_alpha, node) = join_within("alpha", engine, PATIENCE);
    let others = ["beta", "gamma"].map(|name| join_within(name, twin.port(), PATIENCE));
    let mut members = Vec::new();
    for (scheduler, other) in &others {
        let group = other.groups("scope").group("g");
        for _ in 0..EACH {
            let (member, told) = listener(scheduler);
            group.join(&member).unwrap();
            members.push((member, told));
        }
    }
    let group = node.groups("scope").group("g");
    eventually("all members are known", || {
        group.members().len() == 2 * EACH
    });
    assert_eq!(group.broadcast(&7_u64).taken, 2 * EACH);
    for (_, told) in &members {
        assert_eq!(told.recv_timeout(PATIENCE), Ok(7));
    }
    let sent = sent.lock().unwrap();
    assert_eq!(sent.len(), 2);
    for lengths in sent.values() {
        assert_eq!(lengths.len(), 1, "{lengths:?}");
    }
}

/// Three nodes over a twin, and what the test knows of them.
struct World {
    twin: Twin,
    schedulers: Vec<Scheduler>,
    nodes: Vec<Cluster>,
    /// The living processes of each node, and how often each is in a group.
    processes: Vec<Vec<Member>>,
    _clock: Running,
}

struct Member {
    handle: ProcessHandle<u64>,
    joins: HashMap<usize, usize>,
}

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];
const GROUPS: usize = 4;

impl World {
    fn new(seed: u64) -> Self {
        let twin = Twin::new(seed);
        twin.hints(true);
        let mut faults = Faults::default();
        (faults.drop, faults.repeat, faults.reorder) = ([100; 2], 50, 100);
        faults.late = Duration::from_millis(5);
        twin.faults(faults);
        let _clock = twin.run();
        let (schedulers, nodes) = NAMES.iter().map(|name| join(name, twin.port())).unzip();
        Self {
            twin,
            schedulers,
            nodes,
            processes: NAMES.map(|_| Vec::new()).into(),
            _clock,
        }
    }

    fn act(&mut self, chance: &mut fastrand::Rng) {
        let node = chance.usize(..NAMES.len());
        let group = chance.usize(..GROUPS);
        let groups = self.nodes[node].groups("scope");
        let name = group.to_string();
        let processes = &mut self.processes[node];
        let member = chance.usize(..processes.len().max(1));
        match (chance.u32(..100), processes.get_mut(member)) {
            (0..20, _) | (_, None) => {
                let (handle, _told) = listener(&self.schedulers[node]);
                let joins = HashMap::new();
                processes.push(Member { handle, joins });
            }
            (20..60, Some(member)) => {
                groups.group(&name).join(&member.handle).unwrap();
                *member.joins.entry(group).or_default() += 1;
            }
            (60..80, Some(member)) => {
                let joins = member.joins.entry(group).or_default();
                assert_eq!(groups.group(&name).leave(member.handle.pid()), *joins > 0);
                *joins = joins.saturating_sub(1);
            }
            (80..92, Some(_)) => {
                let gone = processes.swap_remove(member);
                self.schedulers[node].terminate(gone.handle.pid()).unwrap();
                assert!(gone.handle.wait_timeout(PATIENCE).is_ok());
            }
            (92..97, Some(_)) => {
                let other = (node + 1) % NAMES.len();
                let [a, b] = [node, other].map(|it| id(NAMES[it]));
                self.twin.cut(&a, &b);
            }
            _ => self.heal(),
        }
    }

    /// Cuts two nodes until their sessions have ended.
    fn part(&self, chance: &mut fastrand::Rng) {
        let node = chance.usize(..NAMES.len());
        let other = (node + 1) % NAMES.len();
        let [a, b] = [node, other].map(|it| id(NAMES[it]));
        self.twin.cut(&a, &b);
        self.twin.cut(&b, &a);
        let knows = |node: usize, it: &NodeId| {
            let nodes = self.nodes[node].nodes();
            nodes.iter().any(|(name, _)| name == it)
        };
        eventually("the session ends", || !knows(node, &b) && !knows(other, &a));
    }

    fn heal(&self) {
        for a in NAMES {
            for b in NAMES {
                self.twin.heal(&id(a), &id(b));
            }
        }
    }

    /// Returns the members of each group, with their nodes.
    fn expected(&self) -> Vec<Vec<Pid>> {
        let mut all = vec![Vec::new(); GROUPS];
        for (scheduler, processes) in self.schedulers.iter().zip(&self.processes) {
            for member in processes {
                let pid = scheduler.absolute(member.handle.pid());
                for (group, joins) in &member.joins {
                    all[*group].extend(std::iter::repeat_n(pid, *joins));
                }
            }
        }
        all.iter_mut().for_each(|it| it.sort_unstable());
        all
    }

    fn seen_by(&self, node: usize) -> Vec<Vec<Pid>> {
        let groups = self.nodes[node].groups("scope");
        let seen = (0..GROUPS).map(|group| {
            let members = groups.group(&group.to_string()).members().into_iter();
            let members = members.map(|pid| self.schedulers[node].absolute(pid));
            let mut members: Vec<_> = members.collect();
            members.sort_unstable();
            members
        });
        seen.collect()
    }
}

/// Follows the members of a group by its monitor.
#[derive(Default)]
struct Follower(Mutex<BTreeMap<String, i64>>);

impl Follower {
    fn change(&self, pid: Pid, by: i64) {
        let mut all = self.0.lock().unwrap();
        let joins = all.entry(pid.to_string()).or_default();
        *joins += by;
        assert!(*joins >= 0, "{pid} has left more often than it has joined");
        if *joins == 0 {
            all.remove(&pid.to_string());
        }
    }
}

// pins: B36
// case: 38
#[test]
fn all_nodes_see_the_same_members_after_joins_leaves_crashes_and_cuts() {
    for seed in 0..4 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut world = World::new(seed);
        let follower = Arc::new(Follower::default());
        let follows = Arc::clone(&follower);
        let watching = actor_fn(move |_, notice: GroupNotice, _| {
            let change = notice.change().unwrap();
            follows.change(change.pid, if change.is_join { 1 } else { -1 });
            Ok(())
        });
        let watching = world.schedulers[0].spawn(watching).unwrap();
        let first = world.nodes[0].groups("scope").group("0");
        let (members, _monitor) = first.monitor(&watching.address().recipient());
        assert!(members.is_empty());
        for act in 0..600 {
            if act % 250 == 100 {
                world.part(&mut chance);
            }
            world.act(&mut chance);
        }
        world.heal();
        let expected = world.expected();
        for (node, name) in NAMES.iter().enumerate() {
            eventually(&format!("seed {seed}: {name} sees all"), || {
                world.seen_by(node) == expected
            });
        }
        let mut counts = BTreeMap::new();
        for pid in first.members() {
            *counts.entry(pid.to_string()).or_default() += 1;
        }
        eventually(&format!("seed {seed}: the monitor has told all"), || {
            *follower.0.lock().unwrap() == counts
        });
    }
}

// pins: B36
// case: 38
#[test]
fn a_node_that_comes_late_is_told_of_all_in_portions() {
    const MEMBERS: usize = 5_000;
    let twin = Twin::new(9);
    twin.hints(true);
    let _clock = twin.run();
    let (alpha, node) = join("alpha", twin.port());
    let (member, _told) = listener(&alpha);
    for group in 0..MEMBERS {
        let group = node.groups("scope").group(&format!("group {group}"));
        group.join(&member).unwrap();
    }
    let (beta, late) = join("beta", twin.port());
    let groups = late.groups("scope");
    eventually("all groups are known", || groups.names().len() == MEMBERS);
    // The end of the process takes it out of all.
    alpha.terminate(member.pid()).unwrap();
    eventually("all groups are empty", || groups.names().is_empty());
    drop(beta);
}

// pins: B36
// case: 38
#[test]
fn what_other_nodes_do_not_take_is_refused_at_once() {
    let twin = Twin::new(9);
    let (alpha, node) = join("alpha", twin.port());
    let (member, _told) = listener(&alpha);
    let long = "g".repeat(256);
    let groups = node.groups("scope");
    let refused = groups.group(&long).join(&member).unwrap_err();
    assert_eq!(refused.kind, JoinErrorKind::NameTooLong);
    let refused = node.groups(&long).group("g").join(&member).unwrap_err();
    assert_eq!(refused.kind, JoinErrorKind::NameTooLong);
    let group = groups.group("g");
    for _ in 0..1024 {
        group.join(&member).unwrap();
    }
    let refused = group.join(&member).unwrap_err();
    assert_eq!(
        (refused.pid, refused.kind),
        (member.pid(), JoinErrorKind::Full)
    );
    assert_eq!(group.members().len(), 1024);
    let address = alpha
        .spawn(actor_fn(|_, _: NameRevoked, _| Ok(())))
        .unwrap();
    let recipient = address.address().recipient();
    node.register_name(&long, &member, recipient).unwrap_err();
}

/// Gives a name to both while they are not connected. When they meet the older entry wins.
// pins: B38
// case: 36
#[test]
fn of_two_owners_the_older_keeps_the_name_and_the_other_is_told() {
    let twin = Twin::new(11);
    twin.hints(true);
    let _clock = twin.run();
    let nodes = ["alpha", "beta"].map(|name| join(name, twin.port()));
    let up = |count| {
        eventually("the nodes know that", || {
            nodes.iter().all(|(_, node)| node.nodes().len() == count)
        });
    };
    up(1);
    let [a, b] = ["alpha", "beta"].map(id);
    twin.cut(&a, &b);
    twin.cut(&b, &a);
    up(0);
    let owners = nodes.each_ref().map(|(scheduler, _)| {
        let (tell, told) = channel();
        let owner = actor_fn(move |_, lost: NameRevoked, _| Ok(tell.send(lost)?));
        (scheduler.spawn(owner).unwrap(), told)
    });
    // Beta is first, though its name is behind.
    for side in [1, 0] {
        let address = owners[side].0.address();
        let node = &nodes[side].1;
        node.register_name("cart", address, address.recipient())
            .unwrap();
        // Another time in microseconds.
        let (_tell, told) = channel::<()>();
        let _nothing = told.recv_timeout(Duration::from_millis(2));
    }
    twin.heal(&a, &b);
    twin.heal(&b, &a);
    let lost = owners[0].1.recv_timeout(PATIENCE).unwrap();
    let winner = nodes[1].0.absolute(owners[1].0.pid());
    assert_eq!((&*lost.name, lost.process), ("cart", owners[0].0.pid()));
    assert_eq!(lost.holder, winner);
    eventually("both know the holder", || {
        nodes.iter().all(|(scheduler, _)| {
            let pid = scheduler.whereis("cart");
            pid.is_some_and(|pid| scheduler.absolute(pid) == winner)
        })
    });
    assert!(owners[1].1.try_recv().is_err());
    assert!(!owners[0].0.address().is_closed(), "the loser lives on");
}

/// Crashes a node: the watcher is told of the loss when its members have left.
// pins: B36
// case: 38
#[test]
fn members_have_left_before_their_node_is_told_as_lost() {
    let twin = Twin::new(13);
    twin.hints(true);
    let _clock = twin.run();
    let (alpha, node) = join("alpha", twin.port());
    let (beta, other) = join("beta", twin.port());
    let (member, _told) = listener(&beta);
    other.groups("scope").group("g").join(&member).unwrap();
    let group = node.groups("scope").group("g");
    eventually("the member is known", || group.members().len() == 1);
    let (tell, told) = channel();
    let seen = group.clone();
    let watcher = actor_fn(move |_, change: NodeChange, _| {
        let is_down = matches!(change, NodeChange::Down { .. });
        Ok(tell.send((is_down, seen.members().len()))?)
    });
    let watcher = alpha.spawn(watcher).unwrap();
    node.watch_nodes(watcher.address().recipient());
    assert_eq!(told.recv_timeout(PATIENCE), Ok((false, 1)));
    twin.crash(&id("beta"));
    assert_eq!(told.recv_timeout(PATIENCE), Ok((true, 0)));
    assert!(node.groups("scope").names().is_empty());
}
