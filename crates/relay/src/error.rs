//! What can go wrong with adding receivers and with attaching channels.

use crate::Receiver;
use ganger_proc_api::{HostName, NodeName, Pid};
use std::fmt;
use std::sync::Arc;

/// A host or a peer was not added. The rejected receiver is inside.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The node has a host of that name, which is untouched.
    #[error("the node {node} has a host {host} already")]
    HostExists {
        /// The node.
        node: NodeName,
        /// The host's name.
        host: HostName,
        /// What was to be added.
        receiver: Arc<dyn Receiver>,
    },
    /// The router has a peer of that name, which is untouched.
    #[error("there is a peer {peer} already")]
    PeerExists {
        /// The peer's name.
        peer: NodeName,
        /// What was to be added.
        receiver: Arc<dyn Receiver>,
    },
    /// The local node's own name can't be a peer's: packages for it never leave the node.
    #[error("{node} is the local node and can't be a peer")]
    LocalNode {
        /// The local node's name.
        node: NodeName,
        /// What was to be added.
        receiver: Arc<dyn Receiver>,
    },
}

impl AddError {
    /// What was to be added.
    #[must_use]
    pub fn into_receiver(self) -> Arc<dyn Receiver> {
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
    /// The PID has a channel, which is untouched: a PID has one receiver.
    #[error("{0} has a receiver already")]
    AlreadyAttached(Pid),
    /// The PID lives elsewhere than the mailbox.
    #[error("{pid} does not live on the host {host} of the node {node}")]
    Elsewhere {
        /// The PID.
        pid: Pid,
        /// The mailbox's node.
        node: NodeName,
        /// The mailbox's host.
        host: HostName,
    },
}
