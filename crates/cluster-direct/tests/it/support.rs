//! Nodes with an inbox, and waits with a limit.

use bytes::Bytes;
use ganger_cluster::{Engine, EngineSink, Lane, NodeId};
use ganger_cluster_direct::{Direct, Reason, Refused};
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a test waits for an event before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The secret of all nodes that do not say another.
pub(crate) const COOKIE: &str = "the cookie of the tests";

pub(crate) fn name(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// Returns an engine on loopback, without seeds.
pub(crate) fn engine() -> Direct {
    Direct::listen("127.0.0.1:0").cookie(COOKIE)
}

/// A call of an engine to its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    Frame(NodeId, Bytes),
    Appeared(NodeId),
    Vanished(NodeId),
    Writable(NodeId),
}

/// The calls of an engine, in order.
#[derive(Default)]
pub(crate) struct Inbox {
    told: Mutex<Vec<Told>>,
    changed: Condvar,
}

impl Inbox {
    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
        self.changed.notify_all();
    }

    /// Waits until the calls so far, and all later, satisfy `is_so`.
    pub(crate) fn until(
        &self,
        what: &str,
        mut is_so: impl FnMut(&[Told]) -> bool,
    ) -> MutexGuard<'_, Vec<Told>> {
        let told = self.told.lock().unwrap();
        let (told, time) = self
            .changed
            .wait_timeout_while(told, PATIENCE, |told| !is_so(told))
            .unwrap();
        assert!(!time.timed_out(), "{what}: not in time: {told:?}");
        told
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Told) -> bool) -> usize {
        self.told
            .lock()
            .unwrap()
            .iter()
            .filter(|it| wanted(it))
            .count()
    }

    pub(crate) fn clear(&self) {
        self.told.lock().unwrap().clear();
    }

    /// Returns the frames so far.
    pub(crate) fn frames(&self) -> Vec<Bytes> {
        frames(&self.told.lock().unwrap())
    }
}

pub(crate) fn frames(told: &[Told]) -> Vec<Bytes> {
    let frames = told.iter().filter_map(|it| match it {
        Told::Frame(_, frame) => Some(frame.clone()),
        _ => None,
    });
    frames.collect()
}

impl EngineSink for Inbox {
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

/// A running node.
pub(crate) struct Node {
    pub(crate) name: NodeId,
    pub(crate) engine: Direct,
    pub(crate) inbox: Arc<Inbox>,
}

impl Node {
    pub(crate) fn start(node: &str, engine: Direct) -> Self {
        let name = name(node);
        let inbox = Arc::new(Inbox::default());
        engine.start(&name, inbox.clone()).unwrap();
        Self {
            name,
            engine,
            inbox,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.engine.local_addr().unwrap()
    }

    /// Returns the address as a seed.
    pub(crate) fn seed(&self) -> [String; 1] {
        [self.address().to_string()]
    }

    pub(crate) fn until_connected(&self, peer: &Self) {
        let peer = &peer.name;
        let is_so = |told: &[Told]| told.contains(&Told::Appeared(peer.clone()));
        drop(self.inbox.until("a peer appears", is_so));
    }

    pub(crate) fn send(&self, to: &Self, frame: impl Into<Bytes>) -> bool {
        self.engine.send(&to.name, Lane::Data, frame.into())
    }

    /// Waits for a refusal of this kind.
    pub(crate) fn until_refused(&self, reason: Reason, by_peer: bool) -> Refused {
        let is_it = |it: &Refused| it.reason == reason && it.by_peer == by_peer;
        let end = Instant::now() + PATIENCE;
        loop {
            let refusals = self.engine.refusals();
            if let Some(found) = refusals.iter().find(|it| is_it(it)) {
                return found.clone();
            }
            let what = format!("{reason:?} at {}: not in time: {refusals:?}", self.name);
            assert!(Instant::now() < end, "{what}");
            thread::yield_now();
        }
    }

    pub(crate) fn stop(&self) {
        self.engine.stop(PATIENCE);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.engine.stop(Duration::ZERO);
    }
}

pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not in time");
        thread::yield_now();
    }
}

/// Starts two nodes, and waits until they are connected to each other.
pub(crate) fn pair(first: Direct, second: Direct) -> (Node, Node) {
    let alpha = Node::start("alpha", first);
    let beta = Node::start("beta", second.seeds(alpha.seed()));
    alpha.until_connected(&beta);
    beta.until_connected(&alpha);
    (alpha, beta)
}
