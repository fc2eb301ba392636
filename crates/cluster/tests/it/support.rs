//! Sessions and inboxes, for the tests and for the model.

use bytes::Bytes;
use ganger_cluster::{
    End, Engine, EngineSink, Event, Half, Halves, Identity, Incarnation, Lane, NodeId, Reader,
    Refusal, SendError, Session, Settings, TwinEngine,
};
use ganger_proc_api::Instant;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_nanos(0) + ms(millis)
}

pub(crate) fn name(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}

/// Creates a session of `me`, in this incarnation, with `peer`.
pub(crate) fn session(me: &str, incarnation: u64, peer: &str, settings: &Settings) -> Session {
    let halves = Halves::new(Incarnation::from_bits(incarnation));
    let identity = Identity::new(name(me), "cluster");
    Session::new(identity, halves, name(peer), settings.clone())
}

/// A call of an engine.
#[derive(Debug)]
pub(crate) enum Told {
    Frame(NodeId, Bytes),
    Appeared(NodeId),
    Vanished(NodeId),
    Writable(NodeId),
}

#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<Told>>);

impl Inbox {
    pub(crate) fn start(engine: &TwinEngine, me: &NodeId) -> Arc<Self> {
        let inbox = Arc::new(Self::default());
        engine.start(me, inbox.clone()).unwrap();
        inbox
    }

    pub(crate) fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn put(&self, told: Told) {
        self.0.lock().unwrap().push(told);
    }
}

impl EngineSink for Inbox {
    fn frame(&self, from: &NodeId, frame: Bytes) {
        self.put(Told::Frame(from.clone(), frame));
    }

    fn appeared(&self, node: &NodeId) {
        self.put(Told::Appeared(node.clone()));
    }

    fn vanished(&self, node: &NodeId) {
        self.put(Told::Vanished(node.clone()));
    }

    fn writable(&self, to: &NodeId) {
        self.put(Told::Writable(to.clone()));
    }
}

/// A side of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    A,
    B,
}

/// A session at both sides, with a carrier under the test's control.
pub(crate) struct Pair {
    pub(crate) a: Session,
    pub(crate) b: Session,
    pub(crate) now: u64,
    pub(crate) at_a: Vec<Event>,
    pub(crate) at_b: Vec<Event>,
    /// Whether a side gives its credit back at once.
    pub(crate) consumes: bool,
}

impl Pair {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            a: session("a", 1, "b", settings),
            b: session("b", 1, "a", settings),
            now: 0,
            at_a: Vec::new(),
            at_b: Vec::new(),
            consumes: true,
        }
    }

    /// Returns both sides when they are up, and have told so.
    pub(crate) fn up(settings: &Settings) -> Self {
        let mut pair = Self::new(settings);
        pair.a.open(at(0));
        pair.run(1);
        assert!(pair.a.is_up() && pair.b.is_up());
        pair.at_a.clear();
        pair.at_b.clear();
        pair
    }

    pub(crate) fn now(&self) -> Instant {
        at(self.now)
    }

    /// Sends a number, and zeros behind it.
    pub(crate) fn say(
        &mut self,
        from: From,
        lane: Lane,
        number: u64,
        zeros: usize,
    ) -> Result<Half, SendError> {
        let now = self.now();
        let side = match from {
            From::A => &mut self.a,
            From::B => &mut self.b,
        };
        let zeros = vec![0; zeros];
        side.send(lane, 1, now, |writer| {
            writer.varint(number);
            writer.raw(&zeros);
        })
    }

    pub(crate) fn run(&mut self, millis: u64) {
        self.run_with(millis, |_, _| true);
    }

    /// Runs both for some milliseconds. `passes` chooses the frames to arrive.
    pub(crate) fn run_with(&mut self, millis: u64, mut passes: impl FnMut(From, &Bytes) -> bool) {
        for _ in 0..millis {
            let mut moves = 1;
            while moves > 0 {
                moves = self.carry(&mut passes);
                self.look();
            }
            self.now += 1;
        }
    }

    /// Carries the frames that leave now, and returns their number.
    fn carry(&mut self, passes: &mut impl FnMut(From, &Bytes) -> bool) -> usize {
        let now = self.now();
        let mut frames = Vec::new();
        while let Some(sent) = self.a.poll_frame(now) {
            frames.push((From::A, sent.frame));
        }
        while let Some(sent) = self.b.poll_frame(now) {
            frames.push((From::B, sent.frame));
        }
        for side in [&self.a, &self.b] {
            let next = side.deadline();
            assert!(next.is_none_or(|it| it > now), "{next:?} has passed");
        }
        for (from, frame) in frames.iter().filter(|(from, it)| passes(*from, it)) {
            match from {
                From::A => self.b.handle(frame, now),
                From::B => self.a.handle(frame, now),
            }
        }
        frames.len()
    }

    /// Takes the events.
    pub(crate) fn look(&mut self) {
        let sides = [(&mut self.a, &mut self.at_a), (&mut self.b, &mut self.at_b)];
        for (side, events) in sides {
            while let Some(event) = side.poll_event() {
                if let Event::Received {
                    session, messages, ..
                } = &event
                    && self.consumes
                {
                    side.consumed(*session, messages.cost());
                }
                events.push(event);
            }
        }
    }
}

/// Returns the numbers that were sent with [`Pair::say`].
pub(crate) fn heard(events: &[Event]) -> Vec<u64> {
    let messages = events.iter().filter_map(|event| match event {
        Event::Received { messages, .. } => Some(messages.clone()),
        _ => None,
    });
    let number = |it: ganger_cluster::Message| Reader::new(it.body).varint().unwrap();
    messages.flatten().map(number).collect()
}

/// Returns the reasons of ended sessions.
pub(crate) fn ends(events: &[Event]) -> Vec<End> {
    let why = events.iter().filter_map(|event| match event {
        Event::Ended { why, .. } => Some(*why),
        _ => None,
    });
    why.collect()
}

pub(crate) fn refusals(events: &[Event]) -> Vec<Refusal> {
    let why = events.iter().filter_map(|event| match event {
        Event::Refused(why) => Some(why.clone()),
        _ => None,
    });
    why.collect()
}
