//! The engine, from the side of its user.

use crate::discovery::Discovery;
use crate::error::DirectError;
use crate::link::Link;
use crate::node::{Limits, Node, Plan, Stays, accept, close, keep, seek};
use crate::refusal::Refused;
use crate::security::cookie::{self, Cookie};
use crate::security::tls::Tls;
use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, EngineSink, Lane, MAX_NAME, NodeId};
use ganger_net::sim::SimNet;
use ganger_net::{Closer, Net, TcpListener};
use ganger_proc_api::SubmitError;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Handle, Scheduler};
use ganger_wait::block_on_for;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Where the first node of a machine listens: see [`Direct::local`].
const LOCAL: &str = "127.0.0.1:7447";
/// How long the scheduler of the engine has for its end.
const HALT: Duration = Duration::from_secs(1);

/// An engine whose nodes connect to each other by TCP. A clone is the same engine, as long as
/// neither has other settings.
///
/// See the [crate](crate) for the whole.
#[derive(Clone)]
pub struct Direct {
    settings: Settings,
    running: Arc<RwLock<Option<Running>>>,
}

#[derive(Clone)]
struct Settings {
    listen: String,
    /// Whether any other port will do.
    may_move: bool,
    advertise: Option<String>,
    cluster: Box<str>,
    secret: Secret,
    keys: Option<PathBuf>,
    is_insecure: bool,
    seeds: Vec<String>,
    discovery: Vec<Arc<dyn Discovery>>,
    limits: Limits,
}

#[derive(Clone)]
enum Secret {
    Usual,
    Text(Box<[u8]>),
    File(PathBuf),
}

struct Running {
    node: Arc<Node>,
    /// The engine's own, unless it is a guest of the program's.
    scheduler: Option<Scheduler>,
    listener: Closer,
    address: SocketAddr,
}

impl Direct {
    /// Creates an engine that listens at this address: an IP address, or a host's name, with a
    /// port. Port 0 is any free port. The host is this machine's own address, or `0.0.0.0` for all
    /// its addresses; any but loopback needs [`keys`](Self::keys), or [`insecure`](Self::insecure).
    ///
    /// Nothing happens before [`Engine::start`].
    #[must_use]
    pub fn listen(address: impl Into<String>) -> Self {
        let settings = Settings {
            listen: address.into(),
            may_move: false,
            advertise: None,
            cluster: "ganger".into(),
            secret: Secret::Usual,
            keys: None,
            is_insecure: false,
            seeds: Vec::new(),
            discovery: Vec::new(),
            limits: Limits::default(),
        };
        Self {
            settings,
            running: Arc::default(),
        }
    }

    /// Creates an engine for programs on the same machine, without keys, files or ports to choose.
    /// The engine listens at 127.0.0.1:7447 if that is free, and else at any free port, and finds
    /// the other nodes there.
    ///
    /// When the node at that port has gone, the others stay connected. The next node that starts
    /// takes the port, and they find it.
    #[must_use]
    pub fn local() -> Self {
        let local = Self::listen(LOCAL).seeds([LOCAL]);
        local.with(|it| it.may_move = true)
    }

    fn with(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(&mut self.settings);
        self.running = Arc::default();
        self
    }

    /// Adds addresses where other nodes may be, each as `host:port`. A host with many addresses, as
    /// in DNS, is all of them. A single node is enough, because nodes tell each other of their
    /// peers. The engine looks the hosts up again every 10 s.
    #[must_use]
    pub fn seeds<S: Into<String>>(self, seeds: impl IntoIterator<Item = S>) -> Self {
        let seeds: Vec<_> = seeds.into_iter().map(Into::into).collect();
        self.with(|it| it.seeds.extend(seeds))
    }

    /// Adds another source of addresses, such as [`SeedsFile`](crate::SeedsFile).
    #[must_use]
    pub fn discovery(self, discovery: impl Discovery) -> Self {
        self.with(|it| it.discovery.push(Arc::new(discovery)))
    }

    /// Sets TLS with the files `ca.pem`, `node.pem` and `node.key` of this folder. `cargo xtask
    /// cluster-keys` writes them. The certificate is for the name of the node.
    ///
    /// [`Engine::start`] reads the files once.
    #[must_use]
    pub fn keys(self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref().to_owned();
        self.with(|it| it.keys = Some(folder))
    }

    /// Sets the secret of the cluster, which never travels. Without keys it tells a node from a
    /// stranger; with keys it may be left out.
    ///
    /// By default, without keys, the engine reads it from `.ganger.cookie` in the home folder, and
    /// makes that file if it does not exist.
    #[must_use]
    pub fn cookie(self, secret: impl AsRef<[u8]>) -> Self {
        let secret = secret.as_ref().into();
        self.with(|it| it.secret = Secret::Text(secret))
    }

    /// Sets the secret as [`cookie`](Self::cookie) does, but from a file, which only its owner may
    /// read. The engine makes the file if it does not exist.
    #[must_use]
    pub fn cookie_file(self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref().to_owned();
        self.with(|it| it.secret = Secret::File(path))
    }

    /// Lets the engine listen and dial outside of loopback without TLS. Frames are encrypted by the
    /// cookie alone, and a listener that learns the cookie later can read all recordings. For
    /// networks that are protected otherwise.
    #[must_use]
    pub fn insecure(self) -> Self {
        self.with(|it| it.is_insecure = true)
    }

    /// Sets the name of the cluster. Nodes of other clusters are refused. `ganger` by default.
    #[must_use]
    pub fn cluster(self, name: impl Into<Box<str>>) -> Self {
        let name = name.into();
        self.with(|it| it.cluster = name)
    }

    /// Sets the address at which other nodes reach this node, an IP address with a port, if this
    /// node listens at another address.
    #[must_use]
    pub fn advertise(self, address: SocketAddr) -> Self {
        self.with(|it| it.advertise = Some(address.to_string()))
    }

    /// Sets the room for frames to a peer, in bytes, in each of the two lanes: 512 KiB by default.
    /// At least one frame fits always.
    #[must_use]
    pub fn outbox(self, bytes: usize) -> Self {
        self.with(|it| it.limits.outbox = bytes)
    }

    /// Sets the most accepted connections whose node has not proven itself: 64 by default. More
    /// close the oldest.
    #[must_use]
    pub fn half_open_limit(self, connections: usize) -> Self {
        self.with(|it| it.limits.half_open = connections.max(1))
    }

    /// Sets the most peers: 256 by default.
    #[must_use]
    pub fn peer_limit(self, peers: usize) -> Self {
        self.with(|it| it.limits.peers = peers)
    }

    /// Sets the time for a handshake, 5 s by default, and for the connection before it.
    #[must_use]
    pub fn handshake_limit(self, time: Duration) -> Self {
        self.with(|it| it.limits.handshake = time)
    }

    /// Sets the time between two questions to the discovery: 10 s by default.
    #[must_use]
    pub fn seek_every(self, time: Duration) -> Self {
        self.with(|it| it.limits.seek = time)
    }

    fn look<R>(&self, look: impl FnOnce(&Running) -> R) -> Option<R> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().map(look)
    }

    /// Returns the address of the listener, while the engine runs.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.look(|it| it.address)
    }

    /// Returns the connected nodes.
    #[must_use]
    pub fn connected(&self) -> Vec<NodeId> {
        let connected = self.look(|it| it.node.connected());
        let names = connected.into_iter().flatten();
        names.map(|(peer, _)| peer.name.clone()).collect()
    }

    /// Returns the last refusals, at most 32, the oldest first: of peers by this node, and of this
    /// node by peers. The log has them, too, each kind once in 10 s.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refused> {
        self.look(|it| it.node.reports.last()).unwrap_or_default()
    }

    /// Returns the number of accepted connections that have no proof yet.
    #[must_use]
    pub fn half_open(&self) -> usize {
        self.look(|it| it.node.half_open()).unwrap_or_default()
    }
}

impl Settings {
    fn address(&self) -> Result<SocketAddr, DirectError> {
        let failed = |error| DirectError::Address {
            address: self.listen.clone(),
            error,
        };
        let mut found = self.listen.to_socket_addrs().map_err(failed)?;
        let none = || {
            failed(io::Error::new(
                io::ErrorKind::NotFound,
                "the host has no address",
            ))
        };
        found.next().ok_or_else(none)
    }

    fn secret(&self) -> Result<Cookie, DirectError> {
        match &self.secret {
            Secret::Text(secret) if secret.is_empty() => Err(DirectError::CookieIsEmpty),
            Secret::Text(secret) => Ok(Cookie::new(secret)),
            Secret::File(path) => cookie::read_or_make(path),
            // The certificates are the proof.
            Secret::Usual if self.keys.is_some() => Ok(Cookie::new(b"")),
            Secret::Usual => cookie::read_or_make(&cookie::usual_file()?),
        }
    }

    /// Starts a node: in the scheduler of this network, or in a scheduler of its own.
    fn start(
        &self,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
        host: Option<(&Handle, Network)>,
    ) -> Result<Running, DirectError> {
        let wanted = self.address()?;
        let is_protected = self.keys.is_some() || self.is_insecure;
        if !wanted.ip().is_loopback() && !is_protected {
            return Err(DirectError::Insecure(wanted));
        }
        if self.cluster.len() > MAX_NAME {
            return Err(DirectError::TooLong("name of the cluster"));
        }
        let tls = self.keys.as_ref().map(|keys| Tls::read(keys, me.as_str()));
        let (tls, cookie) = (tls.transpose()?, self.secret()?);
        let listening = |error| DirectError::Listen {
            address: wanted,
            error,
        };
        let (host, net) = match host {
            Some((host, net)) => (Some(host), net),
            None => (None, Network::System(Net::new().map_err(listening)?)),
        };
        let bound = match net.bind(wanted) {
            Err(error) if self.may_move && error.kind() == io::ErrorKind::AddrInUse => {
                net.bind(SocketAddr::new(wanted.ip(), 0))
            }
            bound => bound,
        };
        let listener = bound.map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let advertised = match &self.advertise {
            Some(advertised) => advertised.clone(),
            // The peer sees from where the connection comes.
            None if address.ip().is_unspecified() => format!(":{}", address.port()),
            None => address.to_string(),
        };
        let plan = Plan {
            me: me.clone(),
            run: cookie::random().map_err(listening)?,
            cluster: self.cluster.clone(),
            address: advertised.into(),
            cookie,
            tls,
            may_leave: is_protected,
            limits: self.limits,
        };
        let (own, scheduler) = match (host, net) {
            (Some(host), _) => (None, host.clone()),
            (None, Network::Simulated(_)) => unreachable!("a simulated network has a scheduler"),
            (None, Network::System(net)) => {
                let own = alone(net)?;
                let handle = own.handle();
                (Some(own), handle)
            }
        };
        let node = Arc::new(Node::new(plan, sink, &scheduler, own.is_none()));
        let closer = listener.closer();
        self.spawn(&scheduler, &node, listener)
            .map_err(|error| DirectError::Scheduler(error.into()))?;
        tracing::info!(target: "ganger::direct", node = %me, %address, "listening");
        Ok(Running {
            node,
            scheduler: own,
            listener: closer,
            address,
        })
    }

    /// Starts the processes of the node.
    fn spawn(
        &self,
        scheduler: &Handle,
        node: &Arc<Node>,
        listener: TcpListener,
    ) -> Result<(), SubmitError> {
        node.spawn_first(scheduler, "listener", Stays::Yes, |cx, node| {
            accept(cx, node, listener)
        })?;
        node.spawn_first(scheduler, "keeper", Stays::Yes, keep)?;
        let seeds = self.seeds.clone();
        let mut discovery = self.discovery.clone();
        // First: of too many addresses these stay.
        discovery.insert(0, Arc::new(move || Ok(seeds.clone())));
        node.spawn_first(scheduler, "seeker", Stays::No, |cx, node| {
            seek(cx, node, discovery)
        })
    }
}

/// Ends a node whose processes are in the program's scheduler. Its keeper closes what is left after
/// this time.
fn leave(node: &Node, links: &[Arc<Link>], within: Duration) {
    if within.is_zero() {
        // The keeper may have been terminated.
        close(links);
    } else if !node.is_within() {
        let _late = block_on_for(within + HALT, node.alone.wait());
    }
}

/// The network of a scheduler.
enum Network {
    System(Net),
    Simulated(Arc<SimNet>),
}

impl Network {
    /// Returns the network that drives this scheduler, if any.
    fn of(scheduler: &Handle) -> Option<Self> {
        let system = scheduler.driver::<Net>().cloned().map(Self::System);
        system.or_else(|| SimNet::of(scheduler).map(Self::Simulated))
    }

    fn bind(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let bind = || TcpListener::bind(address);
        match self {
            Self::System(net) => net.enter(bind),
            Self::Simulated(net) => net.enter(bind),
        }
    }
}

/// Starts a scheduler for the engine alone.
fn alone(net: Net) -> Result<Scheduler, DirectError> {
    let scheduler = Scheduler::builder()
        .workers(1)
        .thread_name("ganger-direct")
        .shutdown_deadline(HALT)
        .driver(net)
        .start();
    scheduler.map_err(|error| DirectError::Scheduler(error.into()))
}

impl Direct {
    fn begin(
        &self,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
        host: Option<(&Handle, Network)>,
    ) -> Result<(), EngineError> {
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Err(EngineError::Running(me.clone()));
        }
        let started = self.settings.start(me, sink, host);
        *running = Some(started.map_err(|error| EngineError::Other(error.into()))?);
        Ok(())
    }
}

impl Engine for Direct {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        self.begin(me, sink, None)
    }

    fn start_in(
        &self,
        scheduler: &Handle,
        me: &NodeId,
        sink: Arc<dyn EngineSink>,
    ) -> Result<(), EngineError> {
        let net = Network::of(scheduler);
        self.begin(me, sink, net.map(|net| (scheduler, net)))
    }

    fn processes(&self) -> usize {
        self.look(|it| it.node.guests()).unwrap_or_default()
    }

    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        let node = self.look(|it| Arc::clone(&it.node));
        node.is_some_and(|node| node.send(to, lane, frame))
    }

    fn stop(&self, within: Duration) {
        // Senders do not wait for the stop.
        let running = (self.running.write())
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(running) = running else {
            return;
        };
        // Before the listener, whose end is no error then.
        let links = running.node.stop(within);
        running.listener.close();
        let Some(scheduler) = running.scheduler else {
            return leave(&running.node, &links, within);
        };
        // Each connection is over when the peer has read all, and has closed its side.
        let flushed = block_on_for(within, async {
            for link in &links {
                link.over.wait().await;
            }
        });
        if flushed.is_none() {
            close(&links);
        }
        // Refused on a thread of the engine itself, which a sink must not stop.
        if scheduler.stop(HALT).is_err() {
            scheduler.begin_stop(HALT);
        }
    }
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Direct")
            .field("listen", &self.settings.listen)
            .field("address", &self.local_addr())
            .finish_non_exhaustive()
    }
}
