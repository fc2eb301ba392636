//! The cluster of a scheduler.

use super::Observer;
use ganger_cluster::Cluster;
use ganger_sched::Handle;

pub use ganger_cluster::{LeaseLook, NameLook, Owners, PeerLook, StoreLook};

/// The most names in the list of a look.
const NAMES: usize = 1_000;

/// A scheduler as a node: see [`Observer::nodes`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nodes {
    /// The name of the node.
    pub name: String,
    /// The name of its cluster.
    pub cluster: String,
    /// The run of the node.
    pub incarnation: String,
    /// The peers that the node knows, connected or not, in the order of their names.
    pub peers: Vec<PeerLook>,
    /// The names of the cluster with their owners: 1,000 at most, and the number of all.
    pub names: Owners,
    /// The lease of the node, while it has one.
    pub lease: Option<LeaseLook>,
    /// The consistent store of the node, if it has one.
    pub store: Option<StoreLook>,
}

impl Observer {
    /// Returns the sessions of the scheduler with other nodes, the names of the cluster, the node's
    /// lease and its store. `None` where the scheduler has not joined a cluster. O(peers), at most
    /// 1,024, and O(strong names × log 1,000 + claims of the node); takes the lock of each peer for
    /// a moment, and holds the lock of the node's names meanwhile.
    #[must_use]
    pub fn nodes(&self) -> Option<Nodes> {
        nodes(&self.handle)
    }
}

/// Returns the same as [`Observer::nodes`].
pub(crate) fn nodes(scheduler: &Handle) -> Option<Nodes> {
    let cluster = Cluster::of(scheduler)?;
    Some(Nodes {
        name: cluster.name().to_string(),
        cluster: cluster.cluster_name().to_owned(),
        incarnation: cluster.incarnation().to_string(),
        peers: cluster.peers(),
        names: cluster.owners(NAMES),
        lease: cluster.lease(),
        store: cluster.store_look(),
    })
}
