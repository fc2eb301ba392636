//! The state shared by the processes of a node.

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
use ganger_proc_api::{Instant, SubmitError};
use ganger_sched::internal::AddressInternals as _;
use ganger_sched::internal::here;
use ganger_sched::{ContextExt, Handle, Spawner};
use ganger_sync::atomic::{AtomicBool, Ordering};
use ganger_sync::sync::{Mutex, lock};
use ganger_task::Cx;
use std::collections::{BTreeMap, VecDeque};
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
    pub(crate) plan: Plan,
    pub(crate) sink: Arc<dyn EngineSink>,
    /// The number of the scheduler that runs the node. The program's own keeps the node, so the
    /// node keeps no handle.
    scheduler: u64,
    /// Whether that is the program's own, and not the engine's.
    pub(super) is_guest: bool,
    /// The processes of the node.
    processes: Mutex<usize>,
    /// Set when the last process has ended.
    pub(crate) alone: Signal,
    pub(crate) reports: Reports,
    pub(crate) book: Mutex<Book>,
    /// The book has changed.
    pub(crate) news: Signal,
    peers: Mutex<BTreeMap<NodeId, Arc<Peer>>>,
    half_open: Mutex<HalfOpen>,
    is_stopping: AtomicBool,
    /// Set at the stop.
    pub(crate) stopped: Signal,
    /// The connections that still write at the stop, and their time.
    last: Mutex<(Vec<Arc<Link>>, Duration)>,
}

#[derive(Default)]
struct HalfOpen {
    next: u64,
    open: VecDeque<(u64, Closer)>,
}

/// The parts of a node that its settings decide.
pub(crate) struct Plan {
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
}

/// Whether a stop of the program's scheduler leaves a process alone. The process ends at the stop
/// of the engine, then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stays {
    Yes,
    No,
}

/// A process of the node, until it ends.
struct Counted(Arc<Node>);

impl Drop for Counted {
    fn drop(&mut self) {
        let mut processes = lock(&self.0.processes);
        *processes -= 1;
        let is_last = *processes == 0;
        drop(processes);
        if is_last {
            self.0.alone.set();
        }
    }
}

impl Node {
    pub(crate) fn new(
        plan: Plan,
        sink: Arc<dyn EngineSink>,
        scheduler: &Handle,
        is_guest: bool,
    ) -> Self {
        let seed = plan
            .run
            .first_chunk()
            .map_or(0, |it| u64::from_le_bytes(*it));
        let book = Book::new(plan.me.clone(), seed);
        Self {
            plan,
            sink,
            scheduler: scheduler.number(),
            is_guest,
            processes: Mutex::new(0),
            alone: Signal::default(),
            reports: Reports::default(),
            book: Mutex::new(book),
            news: Signal::default(),
            peers: Mutex::default(),
            half_open: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            stopped: Signal::default(),
            last: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(0) + here::now()
    }

    /// Starts a process of the node in its scheduler.
    pub(crate) fn spawn_first<F, Fut>(
        self: &Arc<Self>,
        scheduler: &Handle,
        label: &str,
        stays: Stays,
        body: F,
    ) -> Result<(), SubmitError>
    where
        F: FnOnce(Cx, Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (counted, node) = (self.counted(), Arc::clone(self));
        let spawner = self.prepared(scheduler.spawner(), label, stays);
        let started = spawner.spawn(async move |cx: Cx| {
            body(cx, node).await;
            drop(counted);
            Ok(())
        });
        started.map(drop)
    }

    /// Starts a process of the node, by another. It stays at a stop.
    pub(crate) fn spawn<F, Fut>(
        self: &Arc<Self>,
        cx: &Cx,
        label: &str,
        body: F,
    ) -> Result<(), SubmitError>
    where
        F: FnOnce(Cx, Arc<Self>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (counted, node) = (self.counted(), Arc::clone(self));
        let spawner = self.prepared(cx.context().spawner(), label, Stays::Yes);
        let started = spawner.spawn(async move |cx: Cx| {
            body(cx, node).await;
            drop(counted);
            Ok(())
        });
        started.map(drop)
    }

    fn prepared<S>(&self, spawner: Spawner<S>, label: &str, stays: Stays) -> Spawner<S> {
        let spawner = spawner.labelled(format!("direct: {label}"));
        if !self.is_guest || stays == Stays::No {
            return spawner;
        }
        spawner.before_init(|process| {
            process.leave_shutdown_to_caller();
            Ok(())
        })
    }

    /// Counts a process until its end.
    fn counted(self: &Arc<Self>) -> Counted {
        *lock(&self.processes) += 1;
        Counted(Arc::clone(self))
    }

    /// Returns the number of the node's processes in the program's own scheduler.
    pub(crate) fn guests(&self) -> usize {
        if self.is_guest {
            *lock(&self.processes)
        } else {
            0
        }
    }

    /// Returns whether this thread is in a process of the scheduler that runs the node.
    pub(crate) fn is_within(&self) -> bool {
        here::process().is_some_and(|(_, scheduler)| scheduler == self.scheduler)
    }

    pub(crate) fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        let peer = lock(&self.peers).get(to).cloned();
        peer.is_some_and(|peer| peer.send(lane, frame))
    }

    pub(crate) fn peer(&self, name: &NodeId) -> Option<Arc<Peer>> {
        lock(&self.peers).get(name).cloned()
    }

    /// Returns whether a node is connected.
    pub(crate) fn is_connected(&self, name: &NodeId) -> bool {
        self.peer(name).is_some_and(|peer| peer.link().is_some())
    }

    /// Returns the connected peers.
    pub(crate) fn connected(&self) -> Vec<(Arc<Peer>, Arc<Link>)> {
        let peers: Vec<_> = lock(&self.peers).values().cloned().collect();
        let linked = |peer: Arc<Peer>| peer.link().map(|link| (peer, link));
        peers.into_iter().filter_map(linked).collect()
    }

    /// Lists for a peer the other connected peers and their addresses. A list takes some of many:
    /// the turn decides which.
    pub(crate) fn nodes_for(&self, peer: &NodeId, turn: usize) -> Vec<NodeAt> {
        let connected = self.connected();
        let others = connected.iter().filter(|(it, _)| it.name != *peer);
        let others = others.map(|(it, link)| NodeAt {
            name: it.name.clone(),
            address: link.reached_at.clone(),
        });
        let mut others: Vec<_> = others.filter(|it| !it.address.is_empty()).collect();
        let begin = turn % others.len().max(1);
        others.rotate_left(begin);
        others
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
        if !peers.contains_key(name) && peers.len() >= self.plan.limits.peers {
            peers.retain(|_, peer| peer.link().is_some());
            if peers.len() >= self.plan.limits.peers {
                return Err(Reason::TooMany);
            }
        }
        let new = || Arc::new(Peer::new(name.clone(), self.plan.limits.outbox));
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
        // The stop has closed the earlier connections.
        let excess = half_open.open.len() > self.plan.limits.half_open || self.is_stopping();
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

    /// Returns the number of accepted connections that have no proof yet.
    pub(crate) fn half_open(&self) -> usize {
        lock(&self.half_open).open.len()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Ordering: Acquire pairs with the Release in `stop`. `attach` and `enter` look under locks
        // that `stop` takes as well, so `stop` misses no connection.
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Takes no more connections and frames. The present connections end when all is written, or
    /// after this time, if the keeper lives. Returns them.
    pub(crate) fn stop(&self, within: Duration) -> Vec<Arc<Link>> {
        let peers = lock(&self.peers);
        // Ordering: pairs with the load in `is_stopping`.
        self.is_stopping.store(true, Ordering::Release);
        let present: Vec<_> = peers.values().cloned().collect();
        drop(peers);
        let links: Vec<_> = present.iter().filter_map(|peer| peer.close()).collect();
        *lock(&self.last) = (links.clone(), within);
        for (_, closer) in std::mem::take(&mut lock(&self.half_open).open) {
            closer.close();
        }
        self.stopped.set();
        self.news.set();
        links
    }

    /// Takes the connections that may still write at the stop, and their time.
    pub(crate) fn last(&self) -> (Vec<Arc<Link>>, Duration) {
        std::mem::take(&mut lock(&self.last))
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
