//! The names of a cluster, with their owners; the lease and the store of a node.

use serde::{Deserialize, Serialize};

/// The names of a cluster, as a node knows them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterNames {
    /// How many eventual names are known: those of `Cluster::register_name`.
    pub eventual: u64,
    /// How many strong names have entries in the store, as the store has told.
    pub strong: u64,
    /// The first 1,000: strong names before the rest, each in the order of their texts.
    pub first: Vec<ClusterName>,
}

/// A name of a cluster, with its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterName {
    /// The name.
    pub name: String,
    /// The process.
    pub pid: String,
    /// The node of the process.
    pub node: String,
    /// The fencing token of a strong name; none of an eventual one.
    pub token: Option<u64>,
    /// Whether the process, of the answering node, has given the strong name up: the store keeps
    /// the entry until the lease has ended.
    pub is_given_up: bool,
}

/// The lease of a node, for its strong names and locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLease {
    /// The time until the node gives its names and locks up, unless the store renews the lease
    /// before.
    pub left_ns: u64,
    /// The time given by each renewal.
    pub whole_ns: u64,
    /// The strong names of the node's processes.
    pub names: u64,
    /// The locks held by the node.
    pub locks: u64,
    /// Names and locks under way: awaited by processes, or being given back.
    pub waiting: u64,
}

/// The consistent store of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStore {
    /// Which store: a registrar at a node, a stream of JetStream, a twin.
    pub what: String,
    /// For how long the store has been out of reach; none while the node has news from the store.
    pub lost_ns: Option<u64>,
    /// Operations of names and locks without an answer so far.
    pub waiting: u64,
}
