//! A host without processes.

use crate::host_address::HostAddress;
use crate::receiver::{PackageReceiver, refused};
use ganger_proc_api::{HostName, NodeName, Package, SendError, SendErrorKind};

/// A host without processes: it refuses every package. It stands behind a
/// [`ChannelHost`](crate::ChannelHost) that has a host to itself.
#[derive(Debug, Clone, Copy)]
pub struct EmptyHost {
    address: HostAddress,
}

impl EmptyHost {
    /// The host `host` of `node`, empty.
    #[must_use]
    pub const fn new(node: NodeName, host: HostName) -> Self {
        Self {
            address: HostAddress { node, host },
        }
    }
}

impl PackageReceiver for EmptyHost {
    /// Refuses the package. O(1).
    ///
    /// # Errors
    /// Always: [`SendErrorKind::NodeNotFound`] or [`SendErrorKind::HostNotFound`] when the target
    /// lives elsewhere, else [`SendErrorKind::NotFound`].
    fn send(&self, package: Package) -> Result<(), SendError> {
        let kind = if self.address.has(package.target) {
            SendErrorKind::NotFound
        } else if self.address.is_node_of(package.target) {
            SendErrorKind::HostNotFound
        } else {
            SendErrorKind::NodeNotFound
        };
        Err(refused(kind, package))
    }
}
