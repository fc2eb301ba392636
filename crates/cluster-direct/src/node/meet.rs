//! The life of a connection: handshake, place, frames, end.

use super::book::Origin;
use super::handshake::{Failed, Handshake, Met, Seals};
use super::state::Node;
use crate::link::{Attached, Incoming, Link, Peer};
use crate::refusal::Reason;
use crate::security::cookie::Role;
use crate::wire::{
    self, FrameError, Frames, Greeting, Kind, NodeAt, encode_nodes, parse_nodes, put_frame,
};
use bytes::Bytes;
use ganger_cluster::NodeId;
use ganger_net::TcpStream;
use ganger_proc_api::Instant;
use ganger_sync::sync::lock;
use ganger_task::Cx;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection that has lost its place is read.
const LINGER: Duration = Duration::from_secs(1);

/// A peer with the connection that is its present.
pub(super) struct Joined {
    present: Present,
    incoming: Incoming,
    frames: Frames,
}

/// The place of a connection. The drop gives it back, also after a panic of the sink: the peer is
/// dialled again. The node learns that the peer has gone, but not after a panic, nor at a stop.
struct Present {
    node: Arc<Node>,
    peer: Arc<Peer>,
    link: Arc<Link>,
    since: Instant,
}

impl Drop for Present {
    fn drop(&mut self) {
        let Self {
            node,
            peer,
            link,
            since,
        } = self;
        let is_lost = peer.detach(link);
        link.pipe.close();
        link.end();
        if is_lost {
            let now = node.now();
            lock(&node.book).lost(&peer.name, now - *since, now);
            node.news.set();
            // A second panic would end the program.
            if !node.is_stopping() && !std::thread::panicking() {
                node.sink.vanished(&peer.name);
            }
        }
    }
}

/// Meets the node at the other side, and reports a refusal. Also returns the name that the peer
/// says, if it came so far.
pub(super) async fn meet(
    node: &Arc<Node>,
    cx: &Cx,
    role: Role,
    stream: TcpStream,
    address: SocketAddr,
) -> (Option<NodeId>, Result<Joined, Failed>) {
    let mut handshake = match Handshake::new(node, role, stream) {
        Ok(handshake) => handshake,
        Err(failed) => return (None, Err(failed)),
    };
    let met = cx
        .timeout(node.plan.limits.handshake, handshake.meet())
        .await;
    let met = met.unwrap_or(Err(Failed::Refused(Reason::Unfinished)));
    let name = handshake.name.clone();
    let joined = match met {
        Err(Failed::Refused(Reason::Unfinished)) if node.is_stopping() => {
            Err(Failed::Refused(Reason::Unfinished))
        }
        Err(failed) => {
            if let Failed::Refused(reason) = failed {
                node.report(address, name.clone(), reason, false);
            }
            // Also without a code: TLS may have an alert to send.
            let _ = cx.timeout(LINGER, handshake.refuse(failed)).await;
            Err(failed)
        }
        Ok(shown) => join(node, cx, role, handshake.into_met(shown), address).await,
    };
    if let Err(Failed::ByPeer(reason)) = joined {
        node.report(address, name.clone(), reason, true);
    }
    (name, joined)
}

/// Finds the place of a connection.
async fn join(
    node: &Arc<Node>,
    cx: &Cx,
    role: Role,
    met: Met,
    address: SocketAddr,
) -> Result<Joined, Failed> {
    let Met {
        pipe,
        mut incoming,
        greeting,
        rank,
        last,
        seals: Seals { own, theirs },
    } = met;
    let Greeting {
        name,
        run,
        address: said,
        ..
    } = greeting;
    let is_mine = role == Role::Dialer;
    let by_lower = (node.plan.me < name) == is_mine;
    let reached_at = place(&said, address.ip());
    let link = Link::new(pipe, own, run, by_lower, rank, address, reached_at);
    let link = Arc::new(link);
    let (peer, before) = match find_place(node, cx, &name, &link).await {
        Ok(place) => place,
        Err(reason) => {
            node.report(address, Some(name), reason, false);
            // The connection ends in any case.
            let _ = cx
                .timeout(LINGER, refuse(role, &link, &mut incoming, reason))
                .await;
            return Err(Failed::Refused(reason));
        }
    };
    if let Some(before) = &before {
        before.pipe.finish(LINGER);
    }
    let joined = Joined {
        present: Present {
            node: Arc::clone(node),
            peer,
            link,
            since: node.now(),
        },
        incoming,
        frames: Frames::new(theirs),
    };
    let written = joined.present.link.pipe.write(last).await;
    written.map_err(|_| Failed::Refused(Reason::Unfinished))?;
    Ok(joined)
}

/// Makes the connection the present of its peer, after the present has had time to answer.
async fn find_place(
    node: &Node,
    cx: &Cx,
    name: &NodeId,
    link: &Arc<Link>,
) -> Result<(Arc<Peer>, Option<Arc<Link>>), Reason> {
    let mut dead = None;
    loop {
        let (peer, attached) = node.attach(name, link, dead.as_ref())?;
        let present = match attached {
            Attached::Yes(before) => return Ok((peer, before)),
            Attached::Behind(present) => present,
        };
        let sign = present.next_sign();
        peer.send_own(&present, Kind::Ask, Vec::new());
        let answered = cx.timeout(node.plan.limits.rival, sign.wait()).await;
        if present.is_over() {
            continue;
        }
        if present.run != link.run {
            // A busy program may be late. A silent connection ends by itself.
            return Err(Reason::NameTaken);
        }
        if answered.is_ok() {
            return Err(Reason::Duplicate);
        }
        dead = Some(present);
    }
}

/// Says why a peer with a proof is refused.
async fn refuse(role: Role, link: &Link, incoming: &mut Incoming, reason: Reason) {
    let code = reason.code().unwrap_or_default();
    let said = match role {
        Role::Acceptor => wire::refusal(code),
        // The acceptor has sent its proof, so frames are next.
        Role::Dialer => {
            let mut said = Vec::new();
            put_frame(&mut said, &mut lock(&link.seal), Kind::Refused, &[code]);
            said
        }
    };
    if link.pipe.write(said).await.is_ok() {
        link.pipe.finish(LINGER);
        while let Ok(filled) = incoming.fill(&link.pipe).await
            && !filled.is_end
        {
            incoming.bytes.clear();
        }
    }
}

/// Returns the address at which other nodes reach a node that says this of itself.
fn place(said: &str, seen: IpAddr) -> Box<str> {
    match said.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => SocketAddr::new(seen, port).to_string().into(),
        Some(Err(_)) => Box::default(),
        None => said.into(),
    }
}

impl Joined {
    /// Carries frames until the connection ends.
    pub(super) async fn serve(self, node: &Arc<Node>, cx: &Cx) {
        let Self {
            present,
            mut incoming,
            frames,
        } = self;
        let (peer, link) = (Arc::clone(&present.peer), Arc::clone(&present.link));
        let writer = {
            let (peer, link) = (Arc::clone(&peer), Arc::clone(&link));
            node.spawn(cx, "writer", async move |_: Cx, node: Arc<Node>| {
                peer.write(&link, &*node.sink).await;
            })
        };
        if writer.is_err() {
            // The connection ends, and is dialled again.
            return;
        }
        peer.begin(&link);
        let here = link.reached_at.parse().ok();
        lock(&node.book).came(&peer.name, here, link.address);
        node.learn(&peer.name, &link.reached_at, Origin::Own);
        let at = link.address;
        tracing::debug!(target: "ganger::direct", peer = %peer.name, %at, "connected");
        node.sink.appeared(&peer.name);
        node.sink.writable(&peer.name);
        tell(node, &peer, &link);
        let ended = read(node, &peer, &link, &mut incoming, frames).await;
        drop(present);
        match ended {
            End::Malformed(error) => {
                // The report is the warning.
                tracing::debug!(target: "ganger::direct", %error, "disconnected");
                node.report(
                    link.address,
                    Some(peer.name.clone()),
                    Reason::Malformed,
                    false,
                );
            }
            End::Refused(reason) => {
                node.report(link.address, Some(peer.name.clone()), reason, true);
            }
            End::Broken => {
                tracing::debug!(target: "ganger::direct", peer = %peer.name, "disconnected");
            }
        }
    }
}

/// Tells a new peer of as many peers as a list has room for, and all peers of the new, if its
/// address is known.
fn tell(node: &Node, new: &Arc<Peer>, link: &Arc<Link>) {
    let others = node.nodes_for(&new.name, 0);
    if !others.is_empty() {
        new.send_own(link, Kind::Nodes, encode_nodes(&others));
    }
    if link.reached_at.is_empty() {
        return;
    }
    let news = encode_nodes([&NodeAt {
        name: new.name.clone(),
        address: link.reached_at.clone(),
    }]);
    for (peer, link) in node.connected() {
        if peer.name != new.name {
            peer.send_own(&link, Kind::Nodes, news.clone());
        }
    }
}

/// Why a connection has ended.
enum End {
    Broken,
    Malformed(FrameError),
    Refused(Reason),
}

async fn read(
    node: &Node,
    peer: &Arc<Peer>,
    link: &Arc<Link>,
    incoming: &mut Incoming,
    mut frames: Frames,
) -> End {
    let mut is_end = false;
    loop {
        frames.push(&incoming.bytes);
        incoming.bytes.clear();
        loop {
            match frames.next() {
                Ok(None) => break,
                Ok(Some((Kind::Refused, body))) => {
                    let code = body.first().copied().unwrap_or_default();
                    return End::Refused(Reason::of_code(code));
                }
                Ok(Some((kind, body))) => take(node, peer, link, kind, body),
                Err(error) => return End::Malformed(error),
            }
        }
        if is_end {
            return End::Broken;
        }
        let Ok(filled) = incoming.fill(&link.pipe).await else {
            return End::Broken;
        };
        link.hear();
        if filled.has_output {
            peer.poke(link);
        }
        // The last bytes may come with the farewell.
        is_end = filled.is_end;
    }
}

fn take(node: &Node, peer: &Arc<Peer>, link: &Arc<Link>, kind: Kind, body: Bytes) {
    match kind {
        Kind::Session => node.sink.frame(&peer.name, body),
        Kind::Nodes => {
            for known in parse_nodes(&body).unwrap_or_default() {
                node.learn(&known.name, &known.address, Origin::Hearsay);
            }
        }
        Kind::Ask => peer.send_own(link, Kind::Alive, Vec::new()),
        Kind::Alive => link.sign(),
        // The reader has taken it.
        Kind::Refused => {}
    }
}
