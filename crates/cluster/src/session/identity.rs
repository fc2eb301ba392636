//! How a node introduces itself, and how it checks the introduction of a peer.

use crate::id::NodeId;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// Proves the membership of a node in its cluster, by a common key, for instance.
/// A Hello has the halves of both sides, and a half is used once.
/// So the proof of an opening
/// Hello can't be an old copy.
pub trait Proof: Send + Sync {
    /// Makes the proof for the bytes of a Hello, at most 1,024 bytes long.
    fn make(&self, said: &[u8]) -> Bytes;

    /// Returns whether the proof of a peer fits the bytes of its Hello.
    fn check(&self, said: &[u8], proof: &[u8]) -> bool;

    /// Returns a number that all nodes of the cluster have, and strangers can't know. The number
    /// chooses members of groups by keys. 0 by default, which strangers know.
    fn key(&self) -> u64 {
        0
    }
}

/// No proof: the engine knows its peers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProof;

impl Proof for NoProof {
    fn make(&self, _: &[u8]) -> Bytes {
        Bytes::new()
    }

    fn check(&self, _: &[u8], _: &[u8]) -> bool {
        true
    }
}

/// A node, in its own words.
#[derive(Clone)]
pub struct Identity {
    /// The name of the node.
    pub name: NodeId,
    /// The name of its cluster, at most [`MAX_NAME`](crate::MAX_NAME) bytes long. Nodes of other
    /// clusters are refused.
    pub cluster: Arc<str>,
    /// How peers know its membership.
    pub proof: Arc<dyn Proof>,
}

impl Identity {
    /// Creates the identity of a node of a cluster, without a proof.
    #[must_use]
    pub fn new(name: NodeId, cluster: impl Into<Arc<str>>) -> Self {
        Self {
            name,
            cluster: cluster.into(),
            proof: Arc::new(NoProof),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}
