//! Opens a connection to an address.

use super::handshake::Failed;
use super::meet::{Joined, meet};
use super::state::Node;
use crate::refusal::Reason;
use crate::security::cookie::Role;
use ganger_cluster::NodeId;
use ganger_net::{TcpOptions, TcpStream};
use ganger_sync::sync::lock;
use ganger_task::{Cx, Either};
use std::net::SocketAddr;
use std::sync::Arc;

/// Dials, unless the node stops before the peer is met, and carries frames until the end of the
/// connection.
pub(super) async fn dial(node: &Arc<Node>, cx: &Cx, address: SocketAddr) {
    let reached = cx.select((reach(node, cx, address), node.stopped.wait()));
    let Either::A((name, joined)) = reached.await else {
        return;
    };
    let is_met = match &joined {
        Ok(_) => true,
        // The node there is a peer by another connection.
        Err(Failed::Refused(reason) | Failed::ByPeer(reason)) => *reason == Reason::Duplicate,
        Err(Failed::Myself) => false,
    };
    let name = name.filter(|_| is_met);
    match &joined {
        Err(Failed::Myself) => lock(&node.book).is_own(address, node.now()),
        _ => lock(&node.book).dialled(address, name.as_ref(), node.now()),
    }
    node.news.set();
    if let Ok(joined) = joined {
        joined.serve(node, cx).await;
    }
}

/// Connects, and meets the node there.
async fn reach(
    node: &Arc<Node>,
    cx: &Cx,
    address: SocketAddr,
) -> (Option<NodeId>, Result<Joined, Failed>) {
    match cx.until_cancelled(connect(node, address)).await {
        Ok(Some(stream)) => meet(node, cx, Role::Dialer, stream, address).await,
        _ => (None, Err(Failed::Refused(Reason::Unfinished))),
    }
}

async fn connect(node: &Node, address: SocketAddr) -> Option<TcpStream> {
    if !node.plan.may_leave && !address.ip().is_loopback() {
        node.report(address, None, Reason::Insecure, false);
        return None;
    }
    let options = TcpOptions::new().nodelay(true);
    match options
        .connect_within(address, node.plan.limits.handshake)
        .await
    {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::debug!(target: "ganger::direct", %address, %error, "no node there");
            None
        }
    }
}
