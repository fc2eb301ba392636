//! Why a receiver is not added, or a channel not attached.

use crate::receiver::PackageReceiver;
use ganger_proc_api::{HostName, NodeName, Pid};
use std::fmt;
use std::sync::Arc;

/// A host or a peer was not added. The refused receiver is inside.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The node has a host of that name already. That host is untouched.
    #[error("the node {node} has a host {host} already")]
    HostExists {
        /// The node.
        node: NodeName,
        /// The host's name.
        host: HostName,
        /// The receiver that was to be added.
        receiver: Arc<dyn PackageReceiver>,
    },
    /// The router has a peer of that name already. That peer is untouched.
    #[error("there is a peer {peer} already")]
    PeerExists {
        /// The peer's name.
        peer: NodeName,
        /// The receiver that was to be added.
        receiver: Arc<dyn PackageReceiver>,
    },
    /// The peer has the local node's name. Packages for the local node never go to a peer.
    #[error("{node} is the local node and can't be a peer")]
    LocalNode {
        /// The local node's name.
        node: NodeName,
        /// The receiver that was to be added.
        receiver: Arc<dyn PackageReceiver>,
    },
}

impl AddError {
    /// The receiver that was to be added.
    #[must_use]
    pub fn into_receiver(self) -> Arc<dyn PackageReceiver> {
        match self {
            Self::HostExists { receiver, .. }
            | Self::PeerExists { receiver, .. }
            | Self::LocalNode { receiver, .. } => receiver,
        }
    }
}

impl fmt::Debug for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostExists { node, host, .. } => f
                .debug_struct("HostExists")
                .field("node", node)
                .field("host", host)
                .finish_non_exhaustive(),
            Self::PeerExists { peer, .. } => f
                .debug_struct("PeerExists")
                .field("peer", peer)
                .finish_non_exhaustive(),
            Self::LocalNode { node, .. } => f
                .debug_struct("LocalNode")
                .field("node", node)
                .finish_non_exhaustive(),
        }
    }
}

/// No channel was attached to a PID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The PID has a channel already. A PID has at most one, and that one is untouched.
    #[error("{0} has a receiver already")]
    AlreadyAttached(Pid),
    /// The PID names another node or host than the channel host's.
    #[error("{pid} does not live on the host {host} of the node {node}")]
    Elsewhere {
        /// The PID.
        pid: Pid,
        /// The channel host's node.
        node: NodeName,
        /// The channel host's host.
        host: HostName,
    },
}
