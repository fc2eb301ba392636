//! The nodes of a cluster, as the API has them.

use super::{count, nanos};
use crate::api::{ClusterName, ClusterNames, Node, NodeLease, NodeStore, Peer};
use crate::endpoint::observed::Shown;
use crate::observer::{self, LeaseLook, NameLook, Owners, PeerLook, StoreLook};
use ganger_cluster::State;

/// Returns the node of the scheduler.
pub(super) fn node(shown: &Shown) -> Option<Node> {
    let nodes = observer::nodes::nodes(&shown.handle)?;
    Some(Node {
        scheduler: shown.number,
        name: nodes.name,
        cluster: nodes.cluster,
        incarnation: nodes.incarnation,
        peers: nodes.peers.into_iter().map(peer).collect(),
        names: names(nodes.names),
        lease: nodes.lease.map(lease),
        store: nodes.store.map(store),
    })
}

fn names(all: Owners) -> ClusterNames {
    ClusterNames {
        eventual: count(all.eventual),
        strong: count(all.strong),
        first: all.names.into_iter().map(name).collect(),
    }
}

fn name(look: NameLook) -> ClusterName {
    ClusterName {
        name: look.name.into(),
        pid: look.pid.to_string(),
        node: look.node.into(),
        token: look.token.map(|it| it.0),
        is_given_up: look.is_given_up,
    }
}

fn lease(look: LeaseLook) -> NodeLease {
    NodeLease {
        left_ns: nanos(look.left),
        whole_ns: nanos(look.whole),
        names: count(look.names),
        locks: count(look.locks),
        waiting: count(look.waiting),
    }
}

fn store(look: StoreLook) -> NodeStore {
    NodeStore {
        what: look.what,
        lost_ns: look.lost_for.map(nanos),
        waiting: count(look.waiting),
    }
}

fn peer(look: PeerLook) -> Peer {
    let session = look.session;
    let state = match session.state {
        State::Up => "up",
        State::Opening => "opening",
        State::Down => "down",
    };
    Peer {
        name: look.name.to_string(),
        incarnation: look.incarnation.map(|it| it.to_string()),
        state: state.to_owned(),
        round_trip_ns: session.round_trip.map(nanos),
        queued: session.queued.map(count),
        unacknowledged: session.unacknowledged.map(count),
        resent: session.resent,
        watching: count(look.watching),
        watched: count(look.watched),
        links: count(look.links),
        asked: count(look.asked),
        waiting: count(look.waiting),
        ended: look.ended,
        last_end: look.last_end.map(|it| it.to_string()),
        undelivered: look.undelivered,
    }
}
