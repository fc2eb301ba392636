//! The cluster that a scheduler belongs to.

use super::Observer;
use ganger_cluster::Cluster;
use ganger_sched::Handle;

pub use ganger_cluster::PeerLook;

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
}

impl Observer {
    /// The sessions of the scheduler with other nodes. `None` where the scheduler has not joined a
    /// cluster. O(peers), at most 1,024; takes the lock of each peer for a moment.
    #[must_use]
    pub fn nodes(&self) -> Option<Nodes> {
        nodes(&self.handle)
    }
}

/// As [`Observer::nodes`].
pub(crate) fn nodes(scheduler: &Handle) -> Option<Nodes> {
    let cluster = Cluster::of(scheduler)?;
    Some(Nodes {
        name: cluster.name().to_string(),
        cluster: cluster.cluster_name().to_owned(),
        incarnation: cluster.incarnation().to_string(),
        peers: cluster.peers(),
    })
}
