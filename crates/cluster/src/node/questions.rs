//! Questions to a node itself.

use super::core::Core;
use super::requests::Request;
use ganger_proc_api::{NodeName, Pid, Reply};
use std::sync::Arc;

/// Asks a node for its process with this name.
pub(crate) fn whereis(
    core: &Core,
    node: NodeName,
    name: Arc<str>,
    reply: Reply<Option<Pid>>,
) -> Result<(), NoNode> {
    let peer = core.reach(node).ok_or(NoNode(node))?;
    let mut reply = Some(reply);
    // A refused reply is dropped without the lock.
    let is_asked = peer.with(|state, now| {
        let reply = reply.take_if(|_| !state.is_closed());
        let is_asked = reply.is_some();
        if let Some(reply) = reply {
            let number = state.tables.names.insert(reply);
            state.request(Request::Whereis { number, name }, peer.places, now);
        }
        is_asked
    });
    is_asked.then_some(()).ok_or(NoNode(node))
}

/// The question was not asked.
#[derive(Debug, thiserror::Error)]
#[error("there is no connection to the node {0}")]
pub(crate) struct NoNode(pub(crate) NodeName);
