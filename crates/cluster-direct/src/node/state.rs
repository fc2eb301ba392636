//! What the processes of a node share.

use super::book::Book;
use super::reports::Reports;
use crate::link::{Attached, Link, Peer};
use crate::refusal::{Reason, Refused};
use crate::security::cookie::Cookie;
use crate::security::tls::Tls;
use crate::signal::Signal;
use crate::wire::NodeAt;
use bytes::Bytes;
use ganger_cluster::{EngineSink, Lane, NodeId};
use ganger_net::Closer;
use ganger_proc_api::Instant;
use ganger_sched::Handle;
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Sizes and times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes in each lane to a peer.
    pub(crate) outbox: usize,
    /// Accepted connections without a proof.
    pub(crate) half_open: usize,
    pub(crate) peers: usize,
    /// For a handshake.
    pub(crate) handshake: Duration,
    /// Between two signs of life of a connection without traffic.
    pub(crate) alive: Duration,
    /// How long a connection has to answer when a rival wants its place.
    pub(crate) rival: Duration,
    /// Between two questions to the discovery.
    pub(crate) seek: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            outbox: 512 << 10,
            half_open: 64,
            peers: 256,
            handshake: Duration::from_secs(5),
            alive: Duration::from_secs(3),
            rival: Duration::from_secs(1),
            seek: Duration::from_secs(10),
        }
    }
}

/// A running node.
pub(crate) struct Node {
    pub(crate) me: NodeId,
    /// Of this run of the engine.
    pub(crate) run: [u8; 16],
    pub(crate) cluster: Box<str>,
    /// For other nodes.
    pub(crate) address: Box<str>,
    pub(crate) cookie: Cookie,
    pub(crate) tls: Option<Tls>,
    /// Whether addresses that are not loopback may be dialled.
    pub(crate) may_leave: bool,
    pub(crate) limits: Limits,
    pub(crate) sink: Arc<dyn EngineSink>,
    pub(crate) handle: Handle,
    pub(crate) reports: Reports,
    pub(crate) book: Mutex<Book>,
    /// The book has changed.
    pub(crate) news: Signal,
    peers: Mutex<HashMap<NodeId, Arc<Peer>>>,
    half_open: Mutex<HalfOpen>,
    is_stopping: AtomicBool,
}

#[derive(Default)]
struct HalfOpen {
    next: u64,
    open: VecDeque<(u64, Closer)>,
}

/// The parts of a node that its settings decide.
pub(crate) struct Plan {
    pub(crate) me: NodeId,
    pub(crate) run: [u8; 16],
    pub(crate) cluster: Box<str>,
    pub(crate) address: Box<str>,
    pub(crate) cookie: Cookie,
    pub(crate) tls: Option<Tls>,
    pub(crate) may_leave: bool,
    pub(crate) limits: Limits,
}

impl Node {
    pub(crate) fn new(plan: Plan, sink: Arc<dyn EngineSink>, handle: Handle) -> Self {
        let seed = plan
            .run
            .first_chunk()
            .map_or(0, |it| u64::from_le_bytes(*it));
        let book = Book::new(plan.me.clone(), seed);
        Self {
            me: plan.me,
            run: plan.run,
            cluster: plan.cluster,
            address: plan.address,
            cookie: plan.cookie,
            tls: plan.tls,
            may_leave: plan.may_leave,
            limits: plan.limits,
            sink,
            handle,
            reports: Reports::default(),
            book: Mutex::new(book),
            news: Signal::default(),
            peers: Mutex::default(),
            half_open: Mutex::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.handle.now()
    }

    pub(crate) fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        let peer = lock(&self.peers).get(to).cloned();
        peer.is_some_and(|peer| peer.send(lane, frame))
    }

    pub(crate) fn peer(&self, name: &NodeId) -> Option<Arc<Peer>> {
        lock(&self.peers).get(name).cloned()
    }

    /// Whether a node is connected.
    pub(crate) fn is_connected(&self, name: &NodeId) -> bool {
        self.peer(name).is_some_and(|peer| peer.link().is_some())
    }

    /// The connected peers.
    pub(crate) fn connected(&self) -> Vec<(Arc<Peer>, Arc<Link>)> {
        let peers: Vec<_> = lock(&self.peers).values().cloned().collect();
        let linked = |peer: Arc<Peer>| peer.link().map(|link| (peer, link));
        peers.into_iter().filter_map(linked).collect()
    }

    /// The connected peers and where they are, for another peer.
    pub(crate) fn nodes_for(&self, peer: &NodeId) -> Vec<NodeAt> {
        let connected = self.connected();
        let others = connected.iter().filter(|(it, _)| it.name != *peer);
        let others = others.map(|(it, link)| NodeAt {
            name: it.name.clone(),
            address: link.reached_at.clone(),
        });
        others.filter(|it| !it.address.is_empty()).collect()
    }

    /// Gives the place of a peer to a connection. `dead` did not answer.
    pub(crate) fn attach(
        &self,
        name: &NodeId,
        link: &Arc<Link>,
        dead: Option<&Arc<Link>>,
    ) -> Result<(Arc<Peer>, Attached), Reason> {
        let mut peers = lock(&self.peers);
        if self.is_stopping() {
            return Err(Reason::Unfinished);
        }
        if !peers.contains_key(name) && peers.len() >= self.limits.peers {
            peers.retain(|_, peer| peer.link().is_some());
            if peers.len() >= self.limits.peers {
                return Err(Reason::TooMany);
            }
        }
        let new = || Arc::new(Peer::new(name.clone(), self.limits.outbox));
        let peer = peers.entry(name.clone()).or_insert_with(new);
        let attached = peer.attach(link, dead);
        Ok((Arc::clone(peer), attached))
    }

    /// Counts an accepted connection until its proof, and closes the oldest of too many.
    pub(crate) fn enter(&self, closer: Closer) -> u64 {
        let mut half_open = lock(&self.half_open);
        half_open.next += 1;
        let number = half_open.next;
        half_open.open.push_back((number, closer));
        let excess = half_open.open.len() > self.limits.half_open;
        let oldest = excess.then(|| half_open.open.pop_front()).flatten();
        drop(half_open);
        if let Some((_, oldest)) = oldest {
            oldest.close();
        }
        number
    }

    pub(crate) fn leave(&self, number: u64) {
        lock(&self.half_open).open.retain(|(it, _)| *it != number);
    }

    /// How many accepted connections have no proof yet.
    pub(crate) fn half_open(&self) -> usize {
        lock(&self.half_open).open.len()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: pairs with the store in `stop`; attaching looks under the lock of the peers.
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Takes no more connections and frames. Returns the connections that still write.
    pub(crate) fn stop(&self) -> Vec<Arc<Link>> {
        let peers = lock(&self.peers);
        // Ordering: pairs with the load in `is_stopping`.
        self.is_stopping.store(true, Ordering::Release);
        let links = peers.values().filter_map(|peer| peer.close()).collect();
        drop(peers);
        for (_, closer) in std::mem::take(&mut lock(&self.half_open).open) {
            closer.close();
        }
        self.news.set();
        links
    }

    pub(crate) fn report(
        &self,
        address: SocketAddr,
        name: Option<NodeId>,
        reason: Reason,
        by_peer: bool,
    ) {
        let refused = Refused::new(address, name, reason, by_peer);
        self.reports.add(refused, self.now());
    }
}
