//! A node, as the program sees it.

use super::changes::NodeChange;
use super::core::Core;
use super::directory::Directory;
use super::look::PeerLook;
use super::names::{ClusterNameError, ClusterNameErrorKind, NameRevoked};
use super::questions::whereis;
use super::spawns::FarSpawn;
use super::strong::{NoStore, StrongNames};
use super::warden::Leaving;
use crate::id::{Incarnation, NodeId};
use crate::session::Stats;
use crate::store::Store;
use ganger_link::Groups;
use ganger_proc_api::{NodeName, Payload, Pid};
use ganger_sched::internal::HandleInternals as _;
use ganger_sched::{Address, Call, Handle, Recipient};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A scheduler as a node of a cluster. A clone is the same node, and none keeps the scheduler.
///
/// Processes need nothing of it: they send to PIDs of any node, monitor, link, cancel and
/// terminate, as on one.
///
/// ```
/// use ganger_cluster::{Cluster, Twin};
/// use ganger_proc_api::{Actor, BoxError, Context, Envelope, StepOutput, StepResult};
/// use ganger_sched::Scheduler;
///
/// struct Sum(u64);
/// impl Actor for Sum {
///     type Message = u64;
///     fn receive(&mut self, _: &Context, number: u64, out: &mut StepOutput) -> StepResult {
///         self.0 += number;
///         if self.0 == 42 {
///             out.done(self.0);
///         }
///         Ok(())
///     }
/// }
///
/// // Two nodes of one program: a twin carries between them. Other engines carry over networks.
/// let twin = Twin::new(1);
/// let _clock = twin.run();
/// let [alpha, beta] = ["alpha", "beta"].map(|node| Scheduler::builder().node(node).start());
/// let (alpha, beta) = (alpha?, beta?);
/// Cluster::builder().cluster("shop").cookie("secret").engine(twin.port()).join(&alpha)?;
/// Cluster::builder().cluster("shop").cookie("secret").engine(twin.port()).join(&beta)?;
///
/// let sum = beta.spawn(Sum(0))?;
/// let pid = beta.absolute(sum.pid()); // {beta@main|…}, as other nodes know it
/// alpha.send(Envelope::new(None, pid, "add", 40_u64))?;
/// alpha.send(Envelope::new(None, pid, "add", 2_u64))?;
/// assert_eq!(sum.wait().into_result()?.as_u64(), Some(42));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct Cluster {
    pub(crate) core: Arc<Core>,
    leaving: Arc<Leaving>,
}

impl Cluster {
    pub(super) fn new(core: Arc<Core>, leaving: Arc<Leaving>) -> Self {
        Self { core, leaving }
    }

    /// Returns the name of the node.
    #[must_use]
    pub fn name(&self) -> NodeName {
        self.core.base.node
    }

    /// Returns the run of the node.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.core.base.halves.incarnation()
    }

    /// Returns the nodes with a session at the moment, in the order of their names, without this
    /// node.
    #[must_use]
    pub fn nodes(&self) -> Vec<(NodeId, Incarnation)> {
        self.core.base.watchers.nodes()
    }

    /// Tells the process of each node that is connected, and then of each that comes or goes. The
    /// process gets control messages, which no limit of its mailbox refuses. News may come after
    /// the first messages of the node that they are about.
    pub fn watch_nodes(&self, watcher: Recipient<NodeChange>) {
        self.core.base.watchers.add(watcher);
    }

    /// Asks for a session with a node, unless they have a session. False: this node leaves, the
    /// name is its own, or the peers are too many.
    pub fn connect(&self, node: NodeName) -> bool {
        let peer = self.core.reach(node);
        peer.inspect(|peer| peer.open()).is_some()
    }

    /// Asks a node for its process with this name. Without a connection the answer is
    /// `Ended(NoConnection)`.
    ///
    /// ```no_run
    /// # use ganger_cluster::Cluster;
    /// # use ganger_proc_api::{BoxError, NodeName};
    /// # use std::time::Duration;
    /// # fn find(node: &Cluster) -> Result<(), BoxError> {
    /// let beta = NodeName::new("beta")?;
    /// let echo = node.whereis(beta, "echo").wait_timeout(Duration::from_secs(1))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "a call asks when a step, a task or a thread takes it"]
    pub fn whereis(&self, node: NodeName, name: &str) -> Call<Option<Pid>> {
        let (core, name) = (Arc::clone(&self.core), Arc::<str>::from(name));
        Call::by(move |reply| whereis(&core, node, name, reply))
    }

    /// Returns the start of a process at another node, with this input, of a kind that the node
    /// offers ([`Builder::kind`](crate::Builder::kind)). Names, a monitor and a first message hold
    /// from its first moment on.
    ///
    /// ```no_run
    /// # use ganger_cluster::Cluster;
    /// # use ganger_proc_api::{BoxError, NodeName};
    /// # use std::time::Duration;
    /// # fn start(node: &Cluster) -> Result<(), BoxError> {
    /// let beta = NodeName::new("beta")?;
    /// let adder = node.spawn_on(beta, "adder.v1", 40_u64).named("adder").with_message(2_u64);
    /// let pid = adder.call().wait_timeout(Duration::from_secs(1))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn_on<I: Any + Send>(&self, node: NodeName, kind: &str, input: I) -> FarSpawn {
        let core = Arc::clone(&self.core);
        FarSpawn::new(core, node, kind, Payload::of(input))
    }

    /// Returns the consistent store of the node, if the node has one.
    #[must_use]
    pub fn store(&self) -> Option<Arc<dyn Store>> {
        self.core.base.store.get().cloned()
    }

    /// Returns the strong names and locks of the cluster.
    ///
    /// # Errors
    /// [`NoStore`]: the node has no store, and nothing else can promise a single owner.
    pub fn strong_names(&self) -> Result<StrongNames, NoStore> {
        self.core.base.strong.get().cloned().ok_or(NoStore)
    }

    /// Returns the groups of a scope of the cluster. A process of any node that is connected may be
    /// a member of them; each is entered by its own node. The scope knows nothing of [`Groups::of`]
    /// with the same name.
    ///
    /// ```no_run
    /// # use ganger_cluster::Cluster;
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Address;
    /// # fn greet(node: &Cluster, guest: &Address<String>) -> Result<(), BoxError> {
    /// let lobby = node.groups("chat").group("lobby");
    /// lobby.join(guest)?;
    /// let delivered = lobby.broadcast(&"hello".to_owned()); // one message for each other node
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn groups(&self, scope: &str) -> Groups {
        Directory::groups(&self.core.base.directory, scope)
    }

    /// Gives a process of this node a name in the cluster. All nodes find it by the name, with
    /// `whereis`, `lookup` and calls that take a name, where they have no process of their own with
    /// the name. The process has the name until it ends.
    ///
    /// Nodes that are not connected may give the same name. When they meet, the older entry wins,
    /// by the clocks of the nodes, and both nodes log it. The process that loses the name is told
    /// by its recipient, and lives on.
    ///
    /// ```no_run
    /// # use ganger_cluster::{Cluster, NameRevoked};
    /// # use ganger_link::Registry;
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::{Address, Handle};
    /// # enum Cart { Add(u64), Lost(NameRevoked) }
    /// # impl From<NameRevoked> for Cart { fn from(it: NameRevoked) -> Self { Self::Lost(it) } }
    /// # fn name(node: &Cluster, cart: &Address<Cart>, there: &Handle) -> Result<(), BoxError> {
    /// node.register_name("cart", cart, cart.recipient())?;
    /// // On any node:
    /// there.lookup::<Cart>("cart")?.send(Cart::Add(7))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ClusterNameError`] when another process is known to have the name, also as a strong name,
    /// or the process has ended or is of another node. The process may have the name already.
    pub fn register_name<M>(
        &self,
        name: &str,
        process: impl AsRef<Address<M>>,
        lost: Recipient<NameRevoked>,
    ) -> Result<(), ClusterNameError> {
        let process = process.as_ref().untyped();
        let (base, pid) = (&self.core.base, process.pid());
        let strong = base.strong.get();
        let owner = strong.and_then(|it| it.whereis(name).ok()?.map(|it| it.pid));
        match owner.filter(|owner| *owner != pid) {
            Some(holder) => Err(ClusterNameError {
                name: name.into(),
                pid,
                kind: ClusterNameErrorKind::Taken { holder },
            }),
            None => base.directory.register(name, process, lost),
        }
    }

    /// Takes a name in the cluster away from its process of this node. Returns the process.
    pub fn unregister_name(&self, name: &str) -> Option<Pid> {
        self.core.base.directory.unregister(name)
    }

    /// Returns the names in the cluster that this node knows, with their processes, in the order of
    /// their texts. O(n).
    #[must_use]
    pub fn names(&self) -> Vec<(Arc<str>, Pid)> {
        self.core.base.directory.names()
    }

    /// Returns the figures of the session with a node, if the node is known.
    #[must_use]
    pub fn stats(&self, node: NodeName) -> Option<Stats> {
        let peer = self.core.find(node)?;
        Some(peer.look(|state| state.session().stats()))
    }

    /// Returns the number of dropped inherited values of other nodes. Their names are not
    /// registered here, or their bytes are not of their types.
    #[must_use]
    pub fn dropped_values(&self) -> u64 {
        self.core.base.dropped_values()
    }

    /// Returns all peers that the node knows, connected or not, in the order of their names.
    /// O(peers), at most 1,024; takes the lock of each for a moment.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerLook> {
        self.core.all().iter().map(|peer| peer.look_at()).collect()
    }

    /// Returns the name of the cluster.
    #[must_use]
    pub fn cluster_name(&self) -> &str {
        &self.core.base.identity.cluster
    }

    /// Returns the node that the scheduler is, once the scheduler has joined a cluster.
    #[must_use]
    pub fn of(scheduler: &Handle) -> Option<Self> {
        let joined = scheduler.find_extension::<Joined>()?;
        Some(joined.0.clone())
    }

    /// Has [`of`](Self::of) find the node.
    pub(super) fn keep(&self, scheduler: &Handle) {
        let _kept = scheduler.extension(|_| Joined(self.clone()));
    }

    /// Returns the number of open entries between this node and another. Entries are monitors,
    /// watches, links, questions, starts and messages of both sides that wait for the other side. 0
    /// when nothing is open, or the node is not known. Takes the time to count a few tables.
    /// Messages and requests that are accepted and not acknowledged count as bytes in
    /// [`stats`](Self::stats).
    #[must_use]
    pub fn open_entries(&self, node: NodeName) -> usize {
        let peer = self.core.find(node);
        peer.map_or(0, |peer| peer.look(|state| state.open_entries()))
    }

    /// Has the node leave the cluster. Messages are refused from now on; those that were accepted
    /// are carried, for as long as `within`. Then each peer is told. Returns at once.
    pub fn leave(&self, within: Duration) {
        self.core.close();
        for peer in self.core.all() {
            peer.close_for_senders();
        }
        self.leaving.begin(within);
    }
}

/// The scheduler's extension.
struct Joined(Cluster);

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.name())
            .field("incarnation", &self.incarnation())
            .field("nodes", &self.nodes())
            .finish()
    }
}
