//! The nodes, the twin between them, and the hand that plays them.

use super::account::{Account, Totals};
use super::monitors::Monitors;
use crate::support::{Inbox, Told, at, ms, name};
use fastrand::Rng;
use ganger_cluster::{
    Engine, Event, Faults, Half, Halves, Identity, Incarnation, Lane, Message, NodeId, Reader,
    Session, Settings, Twin, TwinEngine,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const NODES: usize = 3;
const NAMES: [&str; NODES] = ["a", "b", "c"];

/// How long faults last, and how long the nodes have afterwards to find each other.
const NOISE: u64 = 1_000;
const CALM: u64 = 4_000;

/// A session ends after this time without progress.
const DEAD: u64 = 200;

/// How late a session may notice: a late acknowledgement, and a time-out.
const SLACK: u64 = 200;

const MESSAGE: u8 = 1;
const MONITOR: u8 = 2;
const EXIT: u8 = 3;

/// The faults of a run. Shares are in thousandths, for new faults in each millisecond.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    faults: Faults,
    cut: u32,
    /// A lane of a way with total loss.
    lane_loss: u32,
    pause: u32,
    crash: u32,
    exit: u32,
    has_hints: bool,
    settings: Settings,
}

impl Plan {
    fn settings() -> Settings {
        let mut settings = Settings::default();
        settings.heartbeat = ms(20);
        settings.dead = ms(DEAD);
        settings.vanished = ms(30);
        settings.rival = ms(40);
        settings.least_timeout = ms(4);
        settings.first_timeout = ms(12);
        settings
    }

    pub(super) fn calm() -> Self {
        Self {
            faults: Faults::default(),
            cut: 0,
            lane_loss: 0,
            pause: 0,
            crash: 0,
            exit: 0,
            has_hints: false,
            settings: Self::settings(),
        }
    }

    pub(super) fn draw(random: &mut Rng) -> Self {
        let mut of = |all: &[u32]| all[random.usize(..all.len())];
        let mut plan = Self::calm();
        plan.faults.drop = [of(&[0, 5, 50, 300]); 2];
        plan.faults.repeat = of(&[0, 20, 200]);
        plan.faults.reorder = of(&[0, 30, 200]);
        plan.faults.late = ms(of(&[1, 12, 120]).into());
        plan.faults.delay = ms(of(&[0, 1]).into());
        plan.faults.jitter = ms(of(&[0, 1, 6]).into());
        plan.cut = of(&[0, 4, 12]);
        plan.lane_loss = of(&[0, 4]);
        plan.pause = of(&[0, 4]);
        plan.crash = of(&[0, 0, 4]);
        plan.exit = of(&[0, 25]);
        plan.has_hints = of(&[0, 1]) == 1;
        plan.settings.window = of(&[1, 1_000, 10_000]) as usize;
        plan.settings.queue = of(&[1_000, 100_000]) as usize;
        plan.settings.frame = of(&[256, 1_000]) as usize;
        plan
    }
}

struct Node {
    halves: Arc<Halves>,
    sessions: BTreeMap<usize, Session>,
    inbox: Arc<Inbox>,
    /// Since when it was run without a pause.
    since: u64,
}

pub(super) struct World {
    now: u64,
    random: Rng,
    plan: Plan,
    twin: Twin,
    names: [NodeId; NODES],
    engines: Vec<TwinEngine>,
    /// None: it has crashed.
    nodes: Vec<Option<Node>>,
    /// Until when a node is paused, or down.
    away: [u64; NODES],
    cuts: BTreeMap<(usize, usize), u64>,
    lane_losses: BTreeMap<(usize, usize), u64>,
    starts: u64,
    numbers: u64,
    account: Account,
    monitors: Monitors,
    /// Exits whose lane was full: node, peer, session and number.
    exits: Vec<(usize, usize, Half, u64)>,
}

impl World {
    pub(super) fn run(seed: u64, plan: impl FnOnce(&mut Rng) -> Plan) -> Totals {
        let world = Self::new(seed, plan);
        let guard = Guard(seed);
        let totals = world.play();
        std::mem::forget(guard);
        totals
    }

    fn new(seed: u64, plan: impl FnOnce(&mut Rng) -> Plan) -> Self {
        let mut random = Rng::with_seed(seed);
        let plan = plan(&mut random);
        let twin = Twin::new(seed);
        twin.faults(plan.faults);
        twin.hints(plan.has_hints);
        let names = NAMES.map(name);
        let engines = [0, 1, 2].map(|id| twin.engine(&names[id]));
        let mut world = Self {
            now: 0,
            random,
            plan,
            twin,
            names,
            engines: engines.into(),
            nodes: (0..NODES).map(|_| None).collect(),
            away: [0; NODES],
            cuts: BTreeMap::new(),
            lane_losses: BTreeMap::new(),
            starts: 0,
            numbers: 0,
            account: Account::default(),
            monitors: Monitors::new(NODES),
            exits: Vec::new(),
        };
        (0..NODES).for_each(|id| world.start(id));
        world
    }

    fn chance(&mut self, share: u32) -> bool {
        self.random.u32(..1000) < share
    }

    fn start(&mut self, id: usize) {
        self.starts += 1;
        let halves = Halves::new(Incarnation::from_bits(self.starts));
        let identity = Identity::new(self.names[id].clone(), "model");
        let peers = (0..NODES).filter(|peer| *peer != id);
        let sessions = peers.map(|peer| {
            let settings = self.plan.settings.clone();
            let to = self.names[peer].clone();
            let mut session = Session::new(identity.clone(), halves.clone(), to, settings);
            session.open(at(self.now));
            (peer, session)
        });
        self.nodes[id] = Some(Node {
            sessions: sessions.collect(),
            inbox: Inbox::start(&self.engines[id], &self.names[id]),
            halves: halves.clone(),
            since: self.now,
        });
    }

    fn play(mut self) -> Totals {
        while self.now < NOISE {
            self.begin_faults();
            self.step(true);
        }
        self.twin.faults(Faults::default());
        self.end_faults(u64::MAX);
        while self.now < NOISE + CALM && !self.is_settled() {
            self.step(false);
        }
        for _ in 0..DEAD / 2 {
            self.step(false);
        }
        assert!(self.is_settled(), "not all nodes are connected at the end");
        let account = &self.account;
        self.monitors.check(|session| account.has_ended(session));
        let mut totals = self.account.check();
        totals.monitors = self.monitors.count();
        totals.told_by_exit = self.monitors.by_exit;
        totals.told_by_end = self.monitors.by_end;
        let nodes = self.nodes.iter().flatten();
        let sessions = nodes.flat_map(|node| node.sessions.values());
        totals.resent += sessions
            .map(|it| it.stats().resent.iter().sum::<u64>())
            .sum::<u64>();
        totals
    }

    fn is_settled(&self) -> bool {
        let is_up = |node: &Option<Node>| {
            let mut sessions = node.iter().flat_map(|node| node.sessions.values());
            node.is_some() && sessions.all(|it| it.is_up() && it.is_flushed())
        };
        let all_run = self.away.iter().all(|until| *until <= self.now);
        all_run && self.nodes.iter().all(is_up) && self.account.is_settled()
    }

    fn begin_faults(&mut self) {
        self.end_faults(self.now);
        let way = |random: &mut Rng| (random.usize(..NODES), random.usize(..NODES));
        if self.chance(self.plan.cut) {
            let (from, to) = way(&mut self.random);
            let until = self.now + self.random.u64(1..800);
            let both = self.random.bool();
            for way in [(from, to), (to, from)]
                .into_iter()
                .take(1 + usize::from(both))
            {
                self.cuts.insert(way, until);
                self.twin.cut(&self.names[way.0], &self.names[way.1]);
            }
        }
        if self.chance(self.plan.lane_loss) {
            let (from, to) = way(&mut self.random);
            let until = self.now + self.random.u64(1..1_000);
            let mut faults = self.plan.faults;
            faults.drop[self.random.usize(..2)] = 1000;
            self.lane_losses.insert((from, to), until);
            let (from, to) = (&self.names[from], &self.names[to]);
            self.twin.faults_between(from, to, faults);
        }
        if self.chance(self.plan.pause) {
            let id = self.random.usize(..NODES);
            if self.nodes[id].is_some() {
                self.away[id] = self.now + self.random.u64(1..1_000);
                self.twin.pause(&self.names[id]);
            }
        }
        if self.chance(self.plan.crash) {
            let id = self.random.usize(..NODES);
            self.crash(id);
            self.away[id] = self.now + self.random.u64(1..600);
        }
        if self.chance(self.plan.exit) {
            let (id, target) = (self.random.usize(..NODES), self.random.u64(..8));
            let told = self.monitors.exit(id, target);
            let told = told.into_iter().map(|(to, half, it)| (id, to, half, it));
            self.exits.extend(told);
            // Another process begins.
            let fresh = self.random.u64(..8);
            if self.chance(800) && fresh > 3 {
                self.begin_process(id);
            }
        }
    }

    /// Begins a new process with a new number: a process is never there again.
    fn begin_process(&mut self, id: usize) {
        self.numbers += 1;
        self.monitors.alive.insert((id, 100 + self.numbers));
    }

    /// Ends all cuts and losses due at a moment.
    fn end_faults(&mut self, now: u64) {
        let (twin, names) = (&self.twin, &self.names);
        self.cuts.retain(|way, until| {
            if *until <= now {
                twin.heal(&names[way.0], &names[way.1]);
            }
            *until > now
        });
        self.lane_losses.retain(|way, until| {
            if *until <= now {
                twin.usual_faults_between(&names[way.0], &names[way.1]);
            }
            *until > now
        });
    }

    fn crash(&mut self, id: usize) {
        let Some(node) = self.nodes[id].take() else {
            return;
        };
        self.twin.crash(&self.names[id]);
        let halves: Vec<_> = node
            .sessions
            .values()
            .filter_map(Session::session)
            .collect();
        for half in &halves {
            self.account.crashed(*half);
        }
        self.monitors.crashed(id, &halves);
        self.exits.retain(|exit| exit.0 != id);
        let unused = node.halves.incarnation();
        assert!(halves.iter().all(|half| half.incarnation == unused));
    }

    fn step(&mut self, is_busy: bool) {
        self.now += 1;
        self.come_back();
        self.twin.advance_to(at(self.now));
        for id in 0..NODES {
            if self.away[id] > self.now || self.nodes[id].is_none() {
                continue;
            }
            self.receive(id);
            if is_busy {
                self.talk(id);
            }
            self.tell_exits(id);
            self.send(id);
        }
    }

    fn come_back(&mut self) {
        for id in 0..NODES {
            if self.away[id] > self.now {
                continue;
            }
            match &mut self.nodes[id] {
                None => self.start(id),
                Some(node) => {
                    let me = self.names[id].clone();
                    if self.twin.is_paused(&me) {
                        node.since = self.now;
                        self.twin.resume(&me);
                    }
                }
            }
        }
    }

    fn session(&mut self, id: usize, peer: usize) -> &mut Session {
        let node = self.nodes[id].as_mut().expect("it runs");
        node.sessions.get_mut(&peer).expect("a session a peer")
    }

    fn receive(&mut self, id: usize) {
        let now = at(self.now);
        let inbox = self.nodes[id].as_ref().expect("it runs").inbox.clone();
        for told in inbox.take() {
            let (Told::Frame(peer, _)
            | Told::Appeared(peer)
            | Told::Vanished(peer)
            | Told::Writable(peer)) = &told;
            let peer = NAMES.iter().position(|it| *it == peer.as_str());
            let Some(peer) = peer.filter(|peer| *peer != id) else {
                continue;
            };
            let session = self.session(id, peer);
            match told {
                Told::Frame(_, frame) => session.handle(&frame, now),
                Told::Appeared(_) => session.appeared(now),
                Told::Vanished(_) => session.vanished(now),
                Told::Writable(_) => session.writable(),
            }
            self.events(id, peer);
        }
    }

    fn events(&mut self, id: usize, peer: usize) {
        while let Some(event) = self.session(id, peer).poll_event() {
            match event {
                Event::Up { session, .. } => self.account.up(session, self.now),
                Event::Ended {
                    session,
                    undelivered,
                    ..
                } => {
                    self.account.ended(session, undelivered);
                    self.monitors.ended(id, session);
                    self.exits.retain(|exit| exit.2 != session);
                }
                Event::Received {
                    session,
                    lane,
                    messages,
                } => {
                    assert!(self.account.is_live(session), "{session:?} has ended");
                    for message in messages {
                        self.session(id, peer).consumed(session, message.cost);
                        self.received((id, peer), session, lane, message);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn received(&mut self, (id, peer): (usize, usize), session: Half, lane: Lane, it: Message) {
        let op = it.op;
        let mut body = Reader::new(it.body);
        let mut next = || body.varint().expect("a number");
        let incarnation = Incarnation::from_bits(next());
        let number = u32::try_from(next()).expect("a number of a half");
        let sender = Half {
            incarnation,
            number,
        };
        let number = next();
        self.account
            .delivered((peer, id), sender, lane, number, self.now);
        match op {
            MESSAGE => {}
            MONITOR => {
                let (monitor, target) = (next(), next());
                if self.monitors.asked(id, peer, session, monitor, target) {
                    self.exits.push((id, peer, session, monitor));
                }
            }
            EXIT => self.monitors.told(session, next()),
            other => panic!("op {other}"),
        }
    }

    /// Sends a message whose body begins with its session and its number.
    fn say(&mut self, id: usize, peer: usize, lane: Lane, op: u8, more: &[u64]) -> Option<Half> {
        let (now, number) = (self.now, self.numbers);
        let session = self.session(id, peer);
        let half = session.session()?;
        let sent = session.send(lane, op, at(now), |body| {
            body.varint(half.incarnation.to_bits());
            body.varint(half.number.into());
            body.varint(number);
            more.iter().for_each(|it| body.varint(*it));
            if op == MESSAGE {
                body.raw(&[7; 100][..(number % 100) as usize]);
            }
        });
        self.numbers += 1;
        match sent {
            Ok(session) => {
                assert_eq!(session, half);
                self.account.accepted(session, lane, number, now);
                Some(session)
            }
            Err(_) => {
                self.account.totals.refused += 1;
                None
            }
        }
    }

    fn talk(&mut self, id: usize) {
        for peer in (0..NODES).filter(|peer| *peer != id) {
            if self.chance(300) {
                for _ in 0..self.random.u32(..6) {
                    let lane = if self.chance(100) {
                        Lane::Control
                    } else {
                        Lane::Data
                    };
                    self.say(id, peer, lane, MESSAGE, &[]);
                }
            }
            if self.chance(20) {
                let (number, target) = (self.monitors.number(), self.random.u64(..8));
                let session = self.say(id, peer, Lane::Control, MONITOR, &[number, target]);
                if let Some(session) = session {
                    self.monitors.sent(number, session, (peer, target));
                }
            }
        }
    }

    fn tell_exits(&mut self, id: usize) {
        for exit in std::mem::take(&mut self.exits) {
            let (node, peer, session, number) = exit;
            if node != id || self.say(id, peer, Lane::Control, EXIT, &[number]).is_none() {
                self.exits.push(exit);
            } else {
                assert!(self.account.is_live(session), "exits go with their session");
            }
        }
    }

    fn send(&mut self, id: usize) {
        let now = at(self.now);
        for peer in (0..NODES).filter(|peer| *peer != id) {
            let deadline = self.session(id, peer).deadline();
            if deadline.is_some_and(|it| it <= now) {
                while let Some(sent) = self.session(id, peer).poll_frame(now) {
                    let to = self.names[peer].clone();
                    if !self.engines[id].send(&to, sent.lane, sent.frame.clone()) {
                        self.session(id, peer).put_back(&sent, now);
                    }
                }
                self.events(id, peer);
            }
            let session = self.session(id, peer);
            let next = session.deadline();
            assert!(next.is_none_or(|it| it > now), "a deadline that has passed");
            let half = session.session();
            let since = self.nodes[id].as_ref().map_or(0, |node| node.since);
            if let Some(half) = half {
                let most = DEAD + SLACK;
                self.account.is_told_in_time(half, since, self.now, most);
            }
        }
    }
}

/// Prints the failing seed.
struct Guard(u64);

impl Drop for Guard {
    fn drop(&mut self) {
        eprintln!("seed {}", self.0);
    }
}
