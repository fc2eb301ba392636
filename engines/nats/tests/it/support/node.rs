//! Nodes: an engine, an inbox for its calls, and a session.

use bytes::Bytes;
use ganger_cluster::{
    End, Engine, EngineSink, Event, Halves, Identity, Incarnation, Lane, NodeId, Reader, SendError,
    Session, Settings,
};
use ganger_cluster_nats::Nats;
use ganger_proc_api::Instant;
use std::sync::{Arc, mpsc};
use std::thread::{self, Thread};
use std::time::{self, Duration};

/// How long a test waits for an event, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn name(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

/// A call of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Frame(NodeId, Bytes),
    Appeared(NodeId),
    Vanished(NodeId),
    Writable(NodeId),
}

/// Calls wake the test's thread.
struct Sink(mpsc::Sender<Told>, Thread);

impl Sink {
    fn tell(&self, told: Told) {
        // The test may have ended.
        let _unheard = self.0.send(told);
        self.1.unpark();
    }
}

impl EngineSink for Sink {
    fn frame(&self, from: &NodeId, frame: Bytes) {
        self.tell(Told::Frame(from.clone(), frame));
    }

    fn appeared(&self, node: &NodeId) {
        self.tell(Told::Appeared(node.clone()));
    }

    fn vanished(&self, node: &NodeId) {
        self.tell(Told::Vanished(node.clone()));
    }

    fn writable(&self, to: &NodeId) {
        self.tell(Told::Writable(to.clone()));
    }
}

/// A node without a session.
pub(crate) struct Node {
    pub(crate) me: NodeId,
    pub(crate) engine: Nats,
    told: mpsc::Receiver<Told>,
}

impl Node {
    pub(crate) fn start(me: &str, engine: Nats) -> Self {
        let (sender, told) = mpsc::channel();
        let me = name(me);
        engine
            .start(&me, Arc::new(Sink(sender, thread::current())))
            .unwrap();
        Self { me, engine, told }
    }

    /// Waits for the next call of interest. The rest is ignored.
    pub(crate) fn wait<T>(&self, mut wanted: impl FnMut(Told) -> Option<T>) -> T {
        let end = time::Instant::now() + LONG;
        loop {
            let rest = end.saturating_duration_since(time::Instant::now());
            match self.told.recv_timeout(rest) {
                Ok(told) => {
                    if let Some(found) = wanted(told) {
                        return found;
                    }
                }
                Err(_) => panic!("{} has waited in vain: {:?}", self.me, self.engine.stats()),
            }
        }
    }

    pub(crate) fn wait_for(&self, wanted: &Told) {
        self.wait(|told| (told == *wanted).then_some(()));
    }

    /// Waits for the next frame.
    pub(crate) fn frame(&self) -> (NodeId, Bytes) {
        self.wait(|told| match told {
            Told::Frame(from, frame) => Some((from, frame)),
            _ => None,
        })
    }

    /// Sends, again whenever the engine takes frames again.
    pub(crate) fn send(&self, to: &NodeId, lane: Lane, frame: &Bytes) {
        while !self.engine.send(to, lane, frame.clone()) {
            self.wait_for(&Told::Writable(to.clone()));
        }
    }
}

/// A node with a session.
pub(crate) struct Side {
    pub(crate) node: Node,
    pub(crate) session: Session,
    start: time::Instant,
    /// The received numbers, by lane.
    pub(crate) heard: [Vec<u64>; 2],
    pub(crate) ends: Vec<End>,
    /// Whether it gives credit back for data.
    pub(crate) consumes: bool,
}

impl Side {
    pub(crate) fn new(node: Node, peer: &NodeId, settings: &Settings) -> Self {
        let incarnation = Incarnation::new(1_700_000_000_000, 1);
        let identity = Identity::new(node.me.clone(), "main");
        let halves = Halves::new(incarnation);
        let mut settings = settings.clone();
        settings.frame = settings.frame.min(node.engine.max_frame());
        let session = Session::new(identity, halves, peer.clone(), settings);
        Self {
            node,
            session,
            start: time::Instant::now(),
            heard: Default::default(),
            ends: Vec::new(),
            consumes: true,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(0) + self.start.elapsed()
    }

    /// Returns the time until the session has something to do.
    fn rest(&self) -> Option<Duration> {
        let deadline = self.session.deadline()?;
        Some(deadline.since(self.now()))
    }

    /// Sends a number, and zeros behind it.
    pub(crate) fn say(&mut self, lane: Lane, number: u64, zeros: &[u8]) -> Result<(), SendError> {
        let now = self.now();
        let sent = self.session.send(lane, 1, now, |writer| {
            writer.varint(number);
            writer.raw(zeros);
        });
        sent.map(|_| ())
    }

    /// Takes the engine's calls, sends frames, looks at the events.
    pub(crate) fn turn(&mut self) {
        while let Ok(told) = self.node.told.try_recv() {
            let now = self.now();
            match told {
                Told::Frame(_, frame) => self.session.handle(&frame, now),
                Told::Appeared(_) => self.session.appeared(now),
                Told::Vanished(_) => self.session.vanished(now),
                Told::Writable(_) => self.session.writable(),
            }
        }
        let now = self.now();
        while let Some(sent) = self.session.poll_frame(now) {
            let peer = self.session.peer();
            if !self.node.engine.send(peer, sent.lane, sent.frame.clone()) {
                self.session.put_back(&sent, now);
            }
        }
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Received {
                    session,
                    lane,
                    messages,
                } => {
                    if self.consumes {
                        self.session.consumed(session, messages.cost());
                    }
                    let numbers = messages.map(|it| Reader::new(it.body).varint().unwrap());
                    self.heard[lane.index()].extend(numbers);
                }
                Event::Ended { why, .. } => self.ends.push(why),
                _ => {}
            }
        }
    }
}

/// Plays two nodes with a session, `alpha` and `beta`, on threads of the test's own. `play` is
/// called after each turn of both, until it says so.
pub(crate) fn play(a: &mut Side, b: &mut Side, mut play: impl FnMut(&mut Side, &mut Side) -> bool) {
    let end = time::Instant::now() + LONG;
    loop {
        a.turn();
        b.turn();
        if play(a, b) {
            return;
        }
        let what = "the sessions get no further";
        assert!(
            time::Instant::now() < end,
            "{what}: {:?}, {:?}",
            a.session,
            b.session
        );
        let rest = a.rest().into_iter().chain(b.rest()).min();
        // The engines' calls wake this thread too.
        thread::park_timeout(rest.unwrap_or(LONG).min(LONG));
    }
}
