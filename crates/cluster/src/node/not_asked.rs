//! Why a node is not asked.

use ganger_proc_api::{BoxError, NodeName, SendErrorKind};

/// The question was not asked. Its source is the kind of the refusal.
#[derive(Debug, thiserror::Error)]
#[error("can't ask the node {node}")]
pub(super) struct NotAsked {
    node: NodeName,
    source: SendErrorKind,
}

impl NotAsked {
    pub(super) fn no_connection(node: NodeName) -> BoxError {
        let source = SendErrorKind::NoConnection;
        Box::new(Self { node, source })
    }

    /// Returns the error of a node for which too much waits.
    pub(super) fn full(node: NodeName) -> BoxError {
        let source = SendErrorKind::Full;
        Box::new(Self { node, source })
    }
}
