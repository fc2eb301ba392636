//! The node and host of a PID, where its process lives.

use ganger_proc_api::{HostName, NodeName, Pid};

/// A host of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostAddress {
    pub(crate) node: NodeName,
    pub(crate) host: HostName,
}

impl HostAddress {
    /// Returns whether `pid` lives on this host. A PID without a node belongs to the local node.
    pub(crate) fn has(self, pid: Pid) -> bool {
        self.is_node_of(pid) && pid.host() == self.host
    }

    /// Returns whether `pid` lives on this host's node.
    pub(crate) fn is_node_of(self, pid: Pid) -> bool {
        pid.node().is_none_or(|node| node == self.node)
    }
}
