//! A host without processes.

use crate::host_address::HostAddress;
use crate::passing::refused;
use ganger_proc_api::{Envelope, EnvelopeReceiver, HostName, NodeName, SendError, SendErrorKind};

/// A host without processes: refuses every envelope. It stands behind a
/// [`ChannelHost`](crate::ChannelHost) with its own host name.
#[derive(Debug, Clone, Copy)]
pub struct EmptyHost {
    address: HostAddress,
}

impl EmptyHost {
    /// Creates the empty host `host` of `node`.
    #[must_use]
    pub const fn new(node: NodeName, host: HostName) -> Self {
        Self {
            address: HostAddress { node, host },
        }
    }
}

impl EnvelopeReceiver for EmptyHost {
    /// Refuses the envelope. O(1).
    ///
    /// # Errors
    /// Always: [`SendErrorKind::NodeNotFound`] or [`SendErrorKind::HostNotFound`] if the target
    /// lives elsewhere, else [`SendErrorKind::NotFound`].
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let kind = if self.address.has(envelope.target) {
            SendErrorKind::NotFound
        } else if self.address.is_node_of(envelope.target) {
            SendErrorKind::HostNotFound
        } else {
            SendErrorKind::NodeNotFound
        };
        Err(refused(kind, envelope))
    }
}
