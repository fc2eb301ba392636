//! Questions to a node itself.

use super::causes::MAX_TEXT;
use super::core::Core;
use super::not_asked::NotAsked;
use super::requests::Request;
use ganger_proc_api::{BoxError, NodeName, Pid, Reply};
use std::sync::Arc;

/// Asks a node for its process with this name.
pub(crate) fn whereis(
    core: &Core,
    node: NodeName,
    name: Arc<str>,
    reply: Reply<Option<Pid>>,
) -> Result<(), BoxError> {
    if name.len() > MAX_TEXT {
        return Err(format!("the name of a process elsewhere has at most {MAX_TEXT} bytes").into());
    }
    let no_node = || NotAsked::no_connection(node);
    let peer = core.reach(node).ok_or_else(no_node)?;
    let mut reply = Some(reply);
    // A refused reply is dropped without the lock.
    peer.with(|state, now| {
        if !state.tables.may_ask(1) {
            return Err(NotAsked::full(node));
        }
        let reply = reply.take_if(|_| !state.is_closed()).ok_or_else(no_node)?;
        let number = state.tables.names.insert(reply);
        state.request(Request::Whereis { number, name }, peer.places, now);
        Ok(())
    })
}
