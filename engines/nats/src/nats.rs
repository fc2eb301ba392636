//! The engine.

use crate::carrier::{Carrier, run};
use crate::error::NatsError;
use crate::notice::Notice;
use crate::outbox::Counts;
use crate::settings::{Auth, Settings, Tls};
use crate::store::NatsStore;
use bytes::Bytes;
use ganger_cluster::{Engine, EngineError, EngineSink, Lane, MAX_FRAME, NodeId, Store};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::oneshot;

/// The shortest time between beacons.
const LEAST_BEACON: Duration = Duration::from_millis(20);

/// Carries frames over a NATS broker, or a cluster of brokers.
///
/// The engine has a thread of its own, and two connections, so that a long queue of data delays no
/// control. Frames on their way to the socket are bounded, see [`outbox`](Self::outbox). The engine
/// promises nothing about order and loss: sessions do.
///
/// ```no_run
/// use ganger_cluster_nats::Nats;
///
/// let engine = Nats::new("nats://broker-1:4222,nats://broker-2:4222")
///     .cluster("shop")
///     .keys("keys/alpha")
///     .on_notice(|notice| eprintln!("{notice}"));
/// # drop(engine);
/// ```
pub struct Nats {
    settings: Settings,
    /// Held while the engine starts or stops.
    threads: Mutex<Option<Running>>,
    /// For senders. They never wait for a start or a stop.
    carrier: RwLock<Option<Arc<Carrier>>>,
}

struct Running {
    thread: JoinHandle<()>,
    stop: oneshot::Sender<Duration>,
}

/// Figures of the engine, for observers.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Whether each lane's connection is there.
    pub is_connected: [bool; 2],
    /// Frames for other nodes, by lane.
    pub out: [Counts; 2],
    /// Frames from other nodes, by lane.
    pub received: [u64; 2],
    /// Messages that were no frames or beacons: too long, without a proper name, or with a wrong
    /// checksum.
    pub foreign: u64,
    /// Frames dropped by the client, because more than 65,536 waited.
    pub slow: u64,
    /// How often a connection was back after a loss.
    pub reconnects: u64,
    /// The nodes whose beacons come.
    pub nodes: Vec<NodeId>,
}

impl Nats {
    /// Creates an engine for these servers, `nats://host:port` or `tls://host:port`, with commas
    /// between. The engine takes any server with an answer, and another when it is lost.
    #[must_use]
    pub fn new(servers: impl Into<String>) -> Self {
        Self {
            settings: Settings::new(servers.into()),
            threads: Mutex::new(None),
            carrier: RwLock::new(None),
        }
    }

    /// Sets the name of the cluster, a part of all subjects. `ganger` by default, as for nodes.
    #[must_use]
    pub fn cluster(mut self, name: impl Into<String>) -> Self {
        self.settings.cluster = name.into();
        self
    }

    /// Sets the user by a credentials file, with a token and a key. Read at the start.
    #[must_use]
    pub fn credentials(mut self, file: impl Into<PathBuf>) -> Self {
        self.settings.auth = Auth::Credentials(file.into());
        self
    }

    /// Sets the user by the seed of an nkey, `SU…`.
    #[must_use]
    pub fn nkey(mut self, seed: impl Into<String>) -> Self {
        self.settings.auth = Auth::Nkey(seed.into());
        self
    }

    /// Sets the user by name and password.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.settings.auth = Auth::User(name.into(), password.into());
        self
    }

    /// Sets the user by a token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.settings.auth = Auth::Token(token.into());
        self
    }

    /// Sets TLS both ways: files in PEM with the authority's certificate, the own certificate, its
    /// key. Read at each connection, so renewed files are used without a restart.
    #[must_use]
    pub fn tls(
        mut self,
        root: impl Into<PathBuf>,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.settings.tls = Some(Tls {
            root: root.into(),
            own: Some((certificate.into(), key.into())),
        });
        self
    }

    /// Sets TLS both ways, with the files of a node's folder by `cargo xtask cluster-keys`:
    /// `ca.pem`, `node.pem`, `node.key`.
    #[must_use]
    pub fn keys(self, folder: impl AsRef<Path>) -> Self {
        let [root, certificate, key] =
            ["ca.pem", "node.pem", "node.key"].map(|file| folder.as_ref().join(file));
        self.tls(root, certificate, key)
    }

    /// Sets TLS with the broker's certificate alone: a file in PEM with its authority's
    /// certificate.
    #[must_use]
    pub fn tls_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.settings.tls = Some(Tls {
            root: root.into(),
            own: None,
        });
        self
    }

    /// Frames may go to another machine without TLS. On a private network alone: an
    /// eavesdropper reads all messages.
    #[must_use]
    pub fn insecure(mut self) -> Self {
        self.settings.is_insecure = true;
        self
    }

    /// Sets how many bytes of each lane may wait for the socket before `send` refuses. Default: 2
    /// MiB.
    #[must_use]
    pub fn outbox(mut self, bytes: usize) -> Self {
        self.settings.room = bytes;
        self
    }

    /// Sets how often this node sends a beacon. Default: 1 s, alike on all nodes: after three and a
    /// half times this without a beacon, sessions get the hint of a vanished node.
    #[must_use]
    pub fn beacon(mut self, every: Duration) -> Self {
        self.settings.beacon = every.max(LEAST_BEACON);
        self
    }

    /// Sets how long a connection is silent before the broker is asked for an answer. Default: 1 s;
    /// after three times without an answer the connection is given up.
    #[must_use]
    pub fn ping(mut self, every: Duration) -> Self {
        self.settings.ping = every.max(LEAST_BEACON);
        self
    }

    /// Sets how long [`start`](Engine::start) tries to reach a broker. Default: 5 s.
    #[must_use]
    pub fn connect_within(mut self, time: Duration) -> Self {
        self.settings.within = time;
        self
    }

    /// Calls `tell` with each event of the connections, for a log. `tell` must return at once.
    #[must_use]
    pub fn on_notice(mut self, tell: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.settings.on_notice = Some(Arc::new(tell));
        self
    }

    /// Opens the cluster's store in JetStream, with the servers, the user and the cluster's name of
    /// this engine, for [`Builder::store`](ganger_cluster::Builder::store). A stream is made if
    /// there is none, with three copies in a cluster of servers. Blocks until the stream is there.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ganger_cluster::Cluster;
    /// use ganger_cluster_nats::Nats;
    ///
    /// let nats = Nats::new("nats://127.0.0.1:4222").cluster("shop");
    /// let store = nats.open_store()?;
    /// let builder = Cluster::builder().cluster("shop").engine(nats).store(store);
    /// # drop(builder);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for a start, and [`NatsError::NoJetStream`], [`NatsError::FewServers`], or
    /// [`NatsError::Stream`] with the settings of the stream that would lose acknowledged writes.
    pub fn open_store(&self) -> Result<Arc<dyn Store>, NatsError> {
        Ok(Arc::new(NatsStore::open(&self.settings)?))
    }

    /// Figures; all zero while the engine does not run.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.running().map(|it| it.stats()).unwrap_or_default()
    }

    fn running(&self) -> Option<Arc<Carrier>> {
        let carrier = self.carrier.read();
        carrier.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_running(&self, to: Option<Arc<Carrier>>) {
        let carrier = self.carrier.write();
        *carrier.unwrap_or_else(PoisonError::into_inner) = to;
    }

    fn begin(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<Running, NatsError> {
        let servers = self.settings.checked()?;
        let carrier = Arc::new(Carrier::new(self.settings.clone(), me, sink));
        // The sink may answer a frame before `start` has returned.
        self.set_running(Some(carrier.clone()));
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("ganger-nats".to_owned())
            .spawn(move || run(&carrier, &servers, &tell, stopped))?;
        match told.recv() {
            Ok(Ok(())) => Ok(Running { thread, stop }),
            Ok(Err(error)) => {
                join(thread);
                Err(error)
            }
            // The thread has panicked, and its join tells why.
            Err(mpsc::RecvError) => {
                join(thread);
                let why = "the engine's thread has ended";
                Err(NatsError::Thread(std::io::Error::other(why)))
            }
        }
    }
}

/// Waits for the engine's thread, unless this is it.
pub(crate) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() == thread::current().id() {
        return;
    }
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

impl Engine for Nats {
    fn start(&self, me: &NodeId, sink: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.is_some() {
            return Err(EngineError::Running(me.clone()));
        }
        match self.begin(me, sink) {
            Ok(running) => {
                *threads = Some(running);
                Ok(())
            }
            Err(error) => {
                self.set_running(None);
                Err(EngineError::Other(Box::new(error)))
            }
        }
    }

    fn send(&self, to: &NodeId, lane: Lane, frame: Bytes) -> bool {
        let carrier = self.running();
        carrier.is_some_and(|carrier| carrier.outbox(lane).push(to, frame))
    }

    /// Returns the broker's `max_payload` at the start without the checksum, at most [`MAX_FRAME`].
    fn max_frame(&self) -> usize {
        self.running().map_or(MAX_FRAME, |it| it.max_frame())
    }

    fn stop(&self, within: Duration) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Running { thread, stop }) = threads.take() else {
            return;
        };
        // The thread waits for it, or has panicked: its join tells why.
        let _unheard = stop.send(within);
        join(thread);
        self.set_running(None);
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.stop(Duration::ZERO);
        }
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.settings, f)
    }
}
