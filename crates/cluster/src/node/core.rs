//! The peers of a node.

use super::base::Base;
use super::link::Link;
use super::peer::Peer;
use super::places::Places;
use crate::id::NodeId;
use ganger_proc_api::NodeName;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The most peers. A node of this name table that is full refuses sends to further nodes.
const MAX_PEERS: usize = 1024;

pub(crate) struct Core {
    pub(crate) base: Arc<Base>,
    peers: RwLock<Peers>,
}

#[derive(Default)]
struct Peers {
    by_name: BTreeMap<NodeName, Arc<Peer>>,
    is_closed: bool,
}

impl Core {
    pub(crate) fn new(base: Base) -> Self {
        Self {
            base: Arc::new(base),
            peers: RwLock::default(),
        }
    }

    /// Returns the peer of this name, unless its link has ended.
    pub(crate) fn find(&self, node: NodeName) -> Option<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        let found = peers.by_name.get(&node).filter(|peer| !peer.is_gone());
        found.cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        peers.by_name.values().cloned().collect()
    }

    /// Returns the peer of this name, and makes a missing peer. `None`: the node leaves, the name
    /// is of the node itself, or there are too many.
    pub(crate) fn reach(&self, node: NodeName) -> Option<Arc<Peer>> {
        if let Some(found) = self.find(node) {
            return Some(found);
        }
        let scheduler = self.base.scheduler.upgrade()?;
        let id = NodeId::new(node.as_str()).ok()?;
        let places = Places {
            own: self.base.node,
            peer: node,
        };
        self.make_room();
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        let found = peers.by_name.get(&node).filter(|peer| !peer.is_gone());
        if let Some(found) = found {
            return Some(Arc::clone(found));
        }
        if peers.is_closed || node == self.base.node || peers.by_name.len() >= MAX_PEERS {
            return None;
        }
        let peer = Arc::new(Peer::new(Arc::clone(&self.base), id, places));
        peers.by_name.insert(node, Arc::clone(&peer));
        // Without the lock: hooks of users run at the start of a process.
        drop(peers);
        let label = format!("link to {node}");
        let started = scheduler
            .spawner()
            .labelled(label)
            .spawn(Link::new(Arc::clone(&peer)));
        if started.is_err() {
            let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
            if peers.by_name.get(&node).is_some_and(|it| it.is_gone()) {
                peers.by_name.remove(&node);
            }
            return None;
        }
        Some(peer)
    }

    /// Removes a peer without an answer so far, or with an ended link, if the table is full.
    fn make_room(&self) {
        let peers = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        let is_full = peers.by_name.len() >= MAX_PEERS;
        drop(peers);
        if !is_full {
            return;
        }
        // Without the lock: a peer sends its farewell.
        let idle = |peer: &Arc<Peer>| peer.is_gone() || peer.retire();
        if let Some(idle) = self.all().into_iter().find(idle) {
            let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
            let node = idle.places.peer;
            if peers
                .by_name
                .get(&node)
                .is_some_and(|it| Arc::ptr_eq(it, &idle))
            {
                peers.by_name.remove(&node);
            }
        }
    }

    /// Lets no further peers be made.
    pub(crate) fn close(&self) {
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.is_closed = true;
    }
}
