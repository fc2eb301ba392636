//! Errors of adding a receiver, and of attaching a channel.

use ganger_proc_api::{EnvelopeReceiver, HostName, NodeName, Pid};
use std::fmt;
use std::sync::Arc;

/// A host or a peer was not added. The error contains the refused receiver.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The node already has a host with this name, which is unchanged.
    #[error("the node {node} already has a host {host}")]
    HostExists {
        /// The node.
        node: NodeName,
        /// The host's name.
        host: HostName,
        /// The refused receiver.
        receiver: Arc<dyn EnvelopeReceiver>,
    },
    /// The router already has a peer with this name, which is unchanged.
    #[error("the peer {peer} already exists")]
    PeerExists {
        /// The peer's name.
        peer: NodeName,
        /// The refused receiver.
        receiver: Arc<dyn EnvelopeReceiver>,
    },
    /// The peer has the local node's name. Envelopes for the local node never go to a peer.
    #[error("invalid peer {node}: this is the local node")]
    LocalNode {
        /// The local node's name.
        node: NodeName,
        /// The refused receiver.
        receiver: Arc<dyn EnvelopeReceiver>,
    },
}

impl AddError {
    /// Returns the refused receiver.
    #[must_use]
    pub fn into_receiver(self) -> Arc<dyn EnvelopeReceiver> {
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
    /// The PID already has a channel, which is unchanged. A PID has at most one channel.
    #[error("{0} already has a receiver")]
    AlreadyAttached(Pid),
    /// The PID names another node or host than the channel host's.
    #[error("{pid} is not a PID of the host {host} on the node {node}")]
    Elsewhere {
        /// The PID.
        pid: Pid,
        /// The channel host's node.
        node: NodeName,
        /// The channel host's host.
        host: HostName,
    },
}
