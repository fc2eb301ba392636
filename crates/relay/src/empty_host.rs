//! Where a PID lives, and a place where none does.

use crate::Receiver;
use crate::receiver::refused;
use ganger_proc_api::{HostName, NodeName, Package, Pid, SendError, SendErrorKind};

/// A host of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) node: NodeName,
    pub(crate) host: HostName,
}

impl Place {
    /// Whether `pid` lives here. Without a node it is meant for the node that looks at it.
    pub(crate) fn has(self, pid: Pid) -> bool {
        self.is_node_of(pid) && pid.host() == self.host
    }

    fn is_node_of(self, pid: Pid) -> bool {
        pid.node().is_none_or(|node| node == self.node)
    }
}

/// A host on which nobody lives: it refuses every package. What is behind a
/// [`Mailbox`](crate::Mailbox) that has a host to itself.
#[derive(Debug, Clone, Copy)]
pub struct EmptyHost {
    place: Place,
}

impl EmptyHost {
    /// The host `host` of `node`, empty.
    #[must_use]
    pub const fn new(node: NodeName, host: HostName) -> Self {
        Self {
            place: Place { node, host },
        }
    }
}

impl Receiver for EmptyHost {
    /// Refuses the package. O(1).
    ///
    /// # Errors
    /// Always: [`SendErrorKind::NodeNotFound`] or [`SendErrorKind::HostNotFound`] when the target
    /// lives elsewhere, else [`SendErrorKind::NotFound`].
    fn send(&self, package: Package) -> Result<(), SendError> {
        let kind = if self.place.has(package.target) {
            SendErrorKind::NotFound
        } else if self.place.is_node_of(package.target) {
            SendErrorKind::HostNotFound
        } else {
            SendErrorKind::NodeNotFound
        };
        Err(refused(kind, package))
    }
}
