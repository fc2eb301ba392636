//! The nodes of a cluster, and their sessions.

use super::owned::{ClusterNames, NodeLease, NodeStore};
use serde::{Deserialize, Serialize};

/// The answer of `/api/v1/nodes`: the schedulers that are nodes of a cluster, with their peers.
///
/// ```
/// let answer = r#"{"version": 1, "nodes": [{
///     "scheduler": 1, "name": "alpha", "cluster": "shop", "incarnation": "19a0c3f51b2d0001",
///     "peers": [],
///     "names": {"eventual": 1, "strong": 1, "first": [
///         {"name": "billing", "pid": "4294967299", "node": "alpha", "token": 7,
///          "is_given_up": false},
///         {"name": "cart", "pid": "{beta@main|4294967301}", "node": "beta", "token": null,
///          "is_given_up": false}
///     ]},
///     "lease": {"left_ns": 4200000000, "whole_ns": 5000000000,
///               "names": 1, "locks": 0, "waiting": 0},
///     "store": {"what": "a registrar at alpha: a single authority", "lost_ns": null,
///               "waiting": 0}
/// }]}"#;
/// let nodes: ganger_observe::api::Nodes = serde_json::from_str(answer)?;
/// assert_eq!(nodes.nodes[0].names.first[0].token, Some(7));
/// assert!(nodes.nodes[0].store.as_ref().is_some_and(|store| store.lost_ns.is_none()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The nodes. Empty: no scheduler has joined a cluster, or the program was built without the
    /// feature `cluster`.
    pub nodes: Vec<Node>,
}

/// A scheduler as a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The number of the scheduler.
    pub scheduler: u64,
    /// The name of the node.
    pub name: String,
    /// The name of its cluster.
    pub cluster: String,
    /// The run of the node.
    pub incarnation: String,
    /// The peers that it knows, connected or not, by name.
    pub peers: Vec<Peer>,
    /// The names of the cluster.
    #[serde(default)]
    pub names: ClusterNames,
    /// The lease of the node, while the node has one.
    pub lease: Option<NodeLease>,
    /// The store of the node, if the node has one.
    pub store: Option<NodeStore>,
}

/// A peer of a node. Pairs of figures are those of the lanes: control, and data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The name of the peer.
    pub name: String,
    /// The run of the peer, while a session with it is up.
    pub incarnation: Option<String>,
    /// The state of the session: `up`, `opening` or `down`.
    pub state: String,
    /// The smoothed round trip, once measured.
    pub round_trip_ns: Option<u64>,
    /// Bytes in the queues.
    pub queued: [u64; 2],
    /// Bytes sent and not acknowledged.
    pub unacknowledged: [u64; 2],
    /// Frames sent again, in all sessions.
    pub resent: [u64; 2],
    /// Processes of the peer that processes of the node monitor, watch or wait for.
    pub watching: u64,
    /// Processes of the node that processes of the peer monitor, watch or wait for.
    pub watched: u64,
    /// Links between processes of both.
    pub links: u64,
    /// Questions to processes of the peer without an answer so far.
    pub asked: u64,
    /// Senders in a wait for room in the queue.
    pub waiting: u64,
    /// Ended sessions.
    pub ended: u64,
    /// The reason for the end of the last of these.
    pub last_end: Option<String>,
    /// Messages lost by ended sessions, with notice.
    pub undelivered: u64,
}
