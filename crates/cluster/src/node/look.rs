//! The peers of a node, for observers.

use super::peer::Peer;
use crate::id::{Incarnation, NodeId};
use crate::session::{End, Stats};

/// A peer of a node at a moment: see [`Cluster::peers`](crate::Cluster::peers).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerLook {
    /// The name of the peer.
    pub name: NodeId,
    /// The run of the peer, while the session is up.
    pub incarnation: Option<Incarnation>,
    /// Figures of the session.
    pub session: Stats,
    /// Processes of the peer that processes of this node monitor, watch or wait for.
    pub watching: usize,
    /// Processes of this node that processes of the peer monitor, watch or wait for.
    pub watched: usize,
    /// Links between processes of both nodes.
    pub links: usize,
    /// Questions to processes of the peer without an answer so far.
    pub asked: usize,
    /// Senders waiting for room in the queue.
    pub waiting: usize,
    /// Ended sessions.
    pub ended: u64,
    /// The end of the last of these sessions.
    pub last_end: Option<End>,
    /// Messages lost with ended sessions. Their senders' node was told by
    /// [`NodeChange`](crate::NodeChange).
    pub undelivered: u64,
}

impl Peer {
    pub(super) fn look_at(&self) -> PeerLook {
        let incarnation = self.base.watchers.incarnation(&self.id);
        self.look(|state| PeerLook {
            name: self.id.clone(),
            incarnation,
            session: state.session().stats(),
            watching: state.tables.watches.len(),
            watched: state.tables.watched.len(),
            links: state.tables.links.len(),
            asked: state.tables.open.asked.len(),
            waiting: state.waiting(),
            ended: state.past().ended,
            last_end: state.past().last_end,
            undelivered: state.past().undelivered,
        })
    }
}
