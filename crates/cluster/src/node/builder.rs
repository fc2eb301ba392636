//! How a scheduler becomes a node of a cluster.

use super::base::Base;
use super::changes::Watchers;
use super::cluster::Cluster;
use super::cookie::Cookie;
use super::core::Core;
use super::directory::{Directory, Ways};
use super::gateway::Gateway;
use super::helpers::Helpers;
use super::kinds::Kinds;
use super::registrar::{self, Authority, Client, Registrar, Source, StoreSource};
use super::sink::Sink;
use super::start;
use super::strong::{self, Keeper, LeaseClock, Machine, Shared, StrongNames};
use super::traces::TraceContext;
use super::types::{TypeTaken, Types};
use super::warden::{Leaving, Warden};
use crate::engine::{Engine, EngineError};
use crate::id::{Halves, MAX_NAME, NameError, NodeId};
use crate::session::{Identity, NoProof, Proof, Settings};
use crate::store::{Log, LogError, MAX_TTL, Store};
use ganger_proc_api::{BoxError, Instant, NodeName, Pid, SubmitError};
use ganger_relay::Router;
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Handle, Spawner};
use ganger_sync::atomic::AtomicU64;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;

/// The name of the cluster by default.
const CLUSTER: &str = "ganger";

/// The most questions that wait for a registrar. Further questions are refused.
const MAX_QUESTIONS: usize = 65_536;

/// Sets a node up: see [`Cluster::builder`].
#[must_use = "a builder does nothing until `join` is called"]
pub struct Builder {
    cluster: Arc<str>,
    proof: Arc<dyn Proof>,
    engine: Option<Box<dyn Engine>>,
    types: Types,
    kinds: Kinds,
    traces: Option<Box<dyn TraceContext>>,
    settings: Settings,
    peers: Vec<String>,
    store: Option<StoreSource>,
    lease: Duration,
    lease_clock: LeaseClock,
}

/// Why a scheduler is not a node.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The scheduler has no node name.
    #[error("the scheduler has no node name: give it one by `Builder::node`, or take a `Runtime`")]
    NoNode,
    /// A name is empty or too long.
    #[error("invalid name {name:?}: {error}")]
    Name {
        /// The name.
        name: Box<str>,
        /// The reason.
        error: NameError,
    },
    /// A name is no name of a node.
    #[error("invalid name {name:?}: {error}")]
    NodeName {
        /// The name.
        name: Box<str>,
        /// The reason.
        error: ganger_proc_api::NameError,
    },
    /// No engine carries frames.
    #[error("the node has no engine: call `Builder::engine`")]
    NoEngine,
    /// Two types have the same name, or a type has two names.
    #[error(transparent)]
    Type(#[from] TypeTaken),
    /// The scheduler is a node of a cluster already, or another crate connects it.
    #[error("the scheduler is connected to other nodes already")]
    Joined,
    /// The scheduler has a router of the program's own.
    #[error("the scheduler has a router that the cluster does not know: take a `Runtime`")]
    HasRouter,
    /// The engine can't start.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The registrar's file can't be used.
    #[error(transparent)]
    Registrar(#[from] LogError),
    /// The scheduler takes no further process.
    #[error("the node has no process: {0}")]
    Refused(Box<str>),
}

impl Cluster {
    /// Begins to make a scheduler a node.
    pub fn builder() -> Builder {
        Builder {
            cluster: CLUSTER.into(),
            proof: Arc::new(NoProof),
            engine: None,
            types: Types::default(),
            kinds: Kinds::default(),
            traces: None,
            settings: Settings::default(),
            peers: Vec::new(),
            store: None,
            lease: strong::TTL,
            lease_clock: Box::new(strong::now),
        }
    }
}

impl Builder {
    /// Sets the name of the cluster. Nodes of other clusters are refused. `ganger` by default.
    pub fn cluster(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            cluster: name.into(),
            ..self
        }
    }

    /// Sets the engine that carries frames between nodes: of a [`Twin`](crate::Twin) in tests, for
    /// instance.
    pub fn engine(self, engine: impl Engine + 'static) -> Self {
        Self {
            engine: Some(Box::new(engine)),
            ..self
        }
    }

    /// Sets a secret that all nodes of the cluster have. A node with another secret is refused. For
    /// engines that prove nothing themselves, as a twin: the direct engine has a cookie of its own.
    pub fn cookie(self, secret: impl AsRef<[u8]>) -> Self {
        self.proof(Cookie::new(secret.as_ref()))
    }

    /// Sets how nodes prove that they belong to the cluster, in place of a cookie.
    pub fn proof(self, proof: impl Proof + 'static) -> Self {
        Self {
            proof: Arc::new(proof),
            ..self
        }
    }

    /// Registers the types of values in messages to other nodes. Scalars, texts, byte strings and
    /// PIDs need no registration.
    pub fn types(mut self, add: impl FnOnce(&mut Types)) -> Self {
        add(&mut self.types);
        self
    }

    /// Offers a kind of process, which other nodes start by this name: [`Cluster::spawn_on`].
    /// `start` gets a spawner with the names, the first message and the monitor of the asking side,
    /// and the input. The process that reads for the asking node calls `start`, so `start` and the
    /// `init` of the process should be short.
    ///
    /// ```
    /// # use ganger_cluster::Cluster;
    /// # use ganger_proc_api::{actor_fn, BoxError};
    /// let builder = Cluster::builder().kind("adder.v1", |spawner, first: u64| {
    ///     let mut sum = first;
    ///     let adder = actor_fn(move |_, number: u64, _| Ok(sum += number));
    ///     Ok(spawner.spawn(adder)?.pid())
    /// });
    /// ```
    pub fn kind<I: Any>(
        mut self,
        name: &str,
        start: impl Fn(Spawner<Handle>, I) -> Result<Pid, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.kinds.add(name, start);
        self
    }

    /// Has traces go on at other nodes: with messages, questions, answers, starts and calls of
    /// functions. Otherwise no context leaves this node, and the node ignores received contexts.
    pub fn trace_context(self, traces: impl TraceContext) -> Self {
        Self {
            traces: Some(Box::new(traces)),
            ..self
        }
    }

    /// Sets the times and sizes of the sessions.
    pub fn settings(self, settings: Settings) -> Self {
        Self { settings, ..self }
    }

    /// Adds nodes to connect at once. Other nodes are connected when the first message is sent to
    /// them, when they connect, or when the engine finds them.
    pub fn peers(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.peers.extend(names.into_iter().map(Into::into));
        self
    }

    /// Sets the consistent store of the cluster, a [`Registrar`] or another: all nodes must have
    /// the same. Without a call the node takes the engine's, if any.
    pub fn store(self, store: impl Into<StoreSource>) -> Self {
        Self {
            store: Some(store.into()),
            ..self
        }
    }

    /// Sets the time of the node's lease, for its strong names and locks: 10 s by default, from a
    /// second to a day. The node renews the lease five times in this time. Names and locks are lost
    /// when half of the time has passed without a renewal, and are free for others when all of it
    /// has passed.
    pub fn lease(self, time: Duration) -> Self {
        let lease = time.clamp(Duration::from_secs(1), MAX_TTL);
        Self { lease, ..self }
    }

    /// Sets the clock of the lease, for tests of sleeping machines.
    #[doc(hidden)]
    pub fn lease_clock(self, clock: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self {
            lease_clock: Box::new(clock),
            ..self
        }
    }

    /// Makes the scheduler a node. Its name is the scheduler's node name.
    ///
    /// From now on messages, monitors, links and requests of the scheduler's processes go to
    /// processes of other nodes, by their PIDs. A stop of the scheduler lets the node leave, after
    /// the last messages of its processes have arrived.
    ///
    /// # Errors
    /// [`JoinError`]; then the scheduler is as before, unless the engine or the process of the node
    /// has failed to start.
    pub fn join(self, scheduler: &Handle) -> Result<Cluster, JoinError> {
        let node = scheduler.node_name().ok_or(JoinError::NoNode)?;
        let id = checked(node.as_str())?;
        if self.cluster.len() > MAX_NAME {
            checked(&self.cluster)?;
        }
        let peers = self.peers.iter().map(|name| peer_name(name));
        let peers = peers.collect::<Result<Vec<_>, _>>()?;
        let engine = self.engine.ok_or(JoinError::NoEngine)?;
        let mut types = self.types;
        registrar::types(&mut types);
        if let Some(taken) = types.taken() {
            return Err(taken.clone().into());
        }
        let mut identity = Identity::new(id.clone(), self.cluster);
        identity.proof = self.proof;
        let directory = Arc::new(Directory::new(node, identity.proof.key()));
        let core = Arc::new(Core::new(Base {
            scheduler: scheduler.downgrade(),
            node,
            engine,
            identity,
            halves: Halves::new(start::incarnation()),
            settings: self.settings,
            types,
            kinds: self.kinds,
            watchers: Watchers::default(),
            traces: self.traces,
            store: OnceLock::new(),
            dropped: AtomicU64::new(0),
            helpers: Helpers::default(),
            strong: OnceLock::new(),
            directory,
        }));
        let gateway = Arc::new(Gateway(Arc::clone(&core)));
        let ways = Arc::clone(&gateway) as Arc<dyn Ways>;
        core.base.directory.connect(Arc::downgrade(&ways));
        let remote = Arc::clone(&gateway);
        scheduler
            .set_remote(remote)
            .map_err(|_| JoinError::Joined)?;
        match scheduler.find_extension::<Arc<Router>>() {
            Some(router) => drop(router.set_fallback(gateway)),
            None => scheduler
                .set_router(gateway)
                .map_err(|_| JoinError::HasRouter)?,
        }
        // Before the engine: a peer that finds this node finds its registrar.
        let store = match self.store.map(|it| it.0) {
            Some(Source::Store(store)) => Some(store),
            Some(Source::Registrar(registrar)) => Some(start_store(&core, scheduler, registrar)?),
            None => None,
        };
        let sink = Arc::new(Sink(Arc::downgrade(&core)));
        if let Err(error) = core.base.engine.start_in(scheduler, &id, sink) {
            core.base.helpers.end_at_once();
            return Err(error.into());
        }
        let store = store.or_else(|| core.base.engine.store());
        if let Some(store) = store {
            let _only = core.base.store.set(Arc::clone(&store));
            let helper = core.base.helpers.add(0);
            let machine = Machine::new(self.lease);
            let weak = scheduler.downgrade();
            let shared = Shared::new(weak, store, machine, self.lease_clock, helper);
            let spawner = scheduler.spawner().labelled("strong names");
            let started = spawner.spawn(Keeper::new(Arc::clone(&shared)));
            started.map_err(|error| JoinError::Refused(error.to_string().into()))?;
            let run = core.base.halves.incarnation().to_bits();
            let names = StrongNames::new(shared, node.as_str(), run);
            let _only = core.base.strong.set(names);
        }
        let leaving = Arc::new(Leaving::default());
        let warden = Warden::new(Arc::clone(&core), Arc::clone(&leaving));
        let started = scheduler.spawner().labelled("node").spawn(warden);
        started.map_err(|error: SubmitError| JoinError::Refused(error.to_string().into()))?;
        for peer in peers {
            if let Some(peer) = core.reach(peer) {
                peer.open();
            }
        }
        let cluster = Cluster::new(core, leaving);
        cluster.keep(scheduler);
        Ok(cluster)
    }
}

/// Starts the processes of a registrar's store.
fn start_store(
    core: &Arc<Core>,
    scheduler: &Handle,
    registrar: Registrar,
) -> Result<Arc<dyn Store>, JoinError> {
    let refused = |error: SubmitError| JoinError::Refused(error.to_string().into());
    let helpers = &core.base.helpers;
    let node = match registrar.place() {
        Ok(node) => peer_name(&node)?,
        Err(path) => {
            let (mut log, mut table) = Log::open(&path, Base::now())?;
            log.rise(&mut table, start::micros())?;
            let authority = Authority::new(log, table, helpers.add(2));
            let spawner = scheduler.named(registrar::NAME).labelled("registrar");
            let spawner = spawner.mailbox_limit(MAX_QUESTIONS);
            spawner.spawn(authority).map_err(refused)?;
            core.base.node
        }
    };
    let (client, store) = Client::new(core, node, helpers.add(1));
    let spawner = scheduler.spawner().labelled("registrar's client");
    spawner.spawn(client).map_err(refused)?;
    Ok(store)
}

fn checked(name: &str) -> Result<NodeId, JoinError> {
    NodeId::new(name).map_err(|error| JoinError::Name {
        name: name.into(),
        error,
    })
}

fn peer_name(name: &str) -> Result<NodeName, JoinError> {
    checked(name)?;
    NodeName::new(name).map_err(|error| JoinError::NodeName {
        name: name.into(),
        error,
    })
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("cluster", &self.cluster)
            .field("types", &self.types)
            .field("settings", &self.settings)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}
