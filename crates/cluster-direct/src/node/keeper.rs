//! Keeps the connections: asks the discovery, dials what is due, and looks for silent peers.

use super::book::Origin;
use super::dial::dial;
use super::reports::Said;
use super::state::Node;
use crate::discovery::Discovery;
use crate::link::Link;
use crate::refusal::Reason;
use crate::security::tls::Tls;
use crate::wire::{Kind, encode_nodes};
use ganger_cluster::NodeId;
use ganger_net::resolve;
use ganger_proc_api::Instant;
use ganger_sync::sync::lock;
use ganger_task::Cx;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The least pause between two rounds.
const LEAST: Duration = Duration::from_millis(1);
/// Certificates are looked at once in so many looks.
const LOOKS_AT_CERTIFICATES: usize = 5;
/// For the addresses of a host.
const RESOLVE: Duration = Duration::from_secs(5);
/// The most addresses from the discovery.
const MOST_SEEDS: usize = 1024;

/// Dials what is due, until the node stops.
pub(crate) async fn keep(cx: Cx, node: Arc<Node>) {
    let mut look_at = node.now() + node.plan.limits.alive;
    let mut turn = 0;
    while !node.is_stopping() {
        let now = node.now();
        if now >= look_at {
            look(&node, turn);
            turn = turn.wrapping_add(1);
            look_at = now + node.plan.limits.alive;
        }
        let due = lock(&node.book).due(now, |name| node.is_connected(name));
        for address in due {
            let spawned = node.spawn(&cx, "dialled", async move |cx: Cx, node: Arc<Node>| {
                dial(&node, &cx, address).await;
            });
            if let Err(error) = spawned {
                // The program's scheduler has as many processes as it may have.
                if let Some(left_out) = node.reports.may_say(Said::NoProcess, node.now()) {
                    tracing::warn!(target: "ganger::direct", %error, left_out, "can't dial");
                }
                lock(&node.book).dialled(address, None, node.now());
            }
        }
        let next = lock(&node.book).next(|name| node.is_connected(name));
        let next = next.unwrap_or(Instant::NEVER).min(look_at);
        let pause = (next - node.now()).max(LEAST);
        // Its end is the time, or news.
        let waited = cx.timeout(pause, node.news.take()).await;
        if waited.is_err_and(|error| error.is_cancelled()) {
            return;
        }
    }
    // The engine's own scheduler lives as long as its connections.
    if node.is_guest {
        finish(&cx, &node).await;
    }
}

/// Lets the last frames leave.
async fn finish(cx: &Cx, node: &Node) {
    // Then the stop has told which are left.
    node.stopped.wait().await;
    let (links, within) = node.last();
    let all = async {
        for link in &links {
            link.over.wait().await;
        }
    };
    if cx.timeout(within, all).await.is_err() {
        close(&links);
    }
}

/// Closes the connections that are left at the end of a node.
pub(crate) fn close(links: &[Arc<Link>]) {
    if links.iter().any(|link| !link.is_over()) {
        tracing::warn!(target: "ganger::direct", "frames are left at the end of the node");
    }
    links.iter().for_each(|link| link.pipe.close());
}

/// Sends a sign of life to each peer, and a list of nodes to the next in turn. So two nodes that
/// could not reach each other for a while meet by any third. Closes connections that are silent, or
/// whose peer's certificate has expired.
fn look(node: &Node, turn: usize) {
    let connected = node.connected();
    for (peer, link) in &connected {
        if link.is_silent() {
            if let Some(left_out) = node.reports.may_say(Said::Silent, node.now()) {
                let peer = &peer.name;
                tracing::warn!(target: "ganger::direct", %peer, left_out, "silent: disconnected");
            }
            link.pipe.close();
        } else {
            peer.send_own(link, Kind::Alive, Vec::new());
        }
        if turn.is_multiple_of(LOOKS_AT_CERTIFICATES) && node.is_expired(link) {
            let name = Some(peer.name.clone());
            node.report(link.address, name, Reason::Expired, false);
            link.pipe.close();
        }
    }
    if connected.is_empty() {
        return;
    }
    let (peer, link) = &connected[turn % connected.len()];
    let others = node.nodes_for(&peer.name, turn);
    if !others.is_empty() {
        peer.send_own(link, Kind::Nodes, encode_nodes(&others));
    }
}

/// Asks the discovery again and again, until the node stops.
pub(crate) async fn seek(cx: Cx, node: Arc<Node>, discovery: Vec<Arc<dyn Discovery>>) {
    while !node.is_stopping() {
        let mut texts = Vec::new();
        let mut has_all = true;
        for discovery in &discovery {
            let discovery = Arc::clone(discovery);
            match cx.blocking(move || discovery.find()).await {
                Ok(Ok(found)) => texts.extend(found),
                Ok(Err(error)) => {
                    has_all = false;
                    tracing::warn!(target: "ganger::direct", %error, "the discovery fails");
                }
                Err(error) if error.is_cancelled() => return,
                Err(error) => {
                    has_all = false;
                    tracing::warn!(target: "ganger::direct", %error, "the discovery fails");
                }
            }
        }
        texts.truncate(MOST_SEEDS);
        let mut seeds = Vec::new();
        for text in &texts {
            match addresses(&cx, text).await {
                Some(found) => seeds.extend(found),
                None => has_all = false,
            }
        }
        seeds.truncate(MOST_SEEDS);
        if has_all {
            lock(&node.book).seeds(&seeds, node.now());
        } else {
            // Earlier seeds stay.
            let mut book = lock(&node.book);
            for address in seeds {
                book.learn(address, None, Origin::Seed, node.now());
            }
        }
        node.news.set();
        let stopped = cx.timeout(node.plan.limits.seek, node.stopped.wait());
        if stopped.await.is_err_and(|error| error.is_cancelled()) {
            return;
        }
    }
}

/// Finds the addresses of a seed.
async fn addresses(cx: &Cx, text: &str) -> Option<Vec<SocketAddr>> {
    if let Ok(address) = text.parse() {
        return Some(vec![address]);
    }
    let parts = text.rsplit_once(':');
    let Some((host, Ok(port))) = parts.map(|(host, port)| (host, port.parse())) else {
        tracing::warn!(target: "ganger::direct", seed = text, "no address: expected `host:port`");
        return None;
    };
    match cx.timeout(RESOLVE, resolve(host, port)).await {
        Ok(Ok(found)) => Some(found),
        Ok(Err(error)) => {
            tracing::warn!(target: "ganger::direct", seed = text, %error, "an unknown host");
            None
        }
        Err(_) => None,
    }
}

impl Node {
    /// Returns whether the certificate of a peer has expired.
    fn is_expired(&self, link: &Link) -> bool {
        let tls = self.plan.tls.as_ref();
        let has_expired = |tls: &Tls| link.pipe.with_tls(|it| tls.has_expired(it));
        tls.and_then(has_expired) == Some(true)
    }

    /// Learns where a node says that it, or another, is.
    pub(super) fn learn(&self, name: &NodeId, address: &str, origin: Origin) {
        // A host's name would be a question to the network for each stranger that a peer names.
        let Ok(address) = address.parse() else {
            return;
        };
        lock(&self.book).learn(address, Some(name), origin, self.now());
        self.news.set();
    }
}
