//! The calls of the engine.
//!
//! A frame of a stranger makes no peer before its Hello has proved that it belongs to the cluster.
//! Any other frame of a stranger is of a session of this node's predecessor, and is refused so.

use super::core::Core;
use super::inbox::Told;
use super::peer::Peer;
use crate::engine::EngineSink;
use crate::id::{Lane, NodeId};
use crate::wire::{Frame, Notice};
use bytes::Bytes;
use ganger_proc_api::NodeName;
use std::sync::{Arc, Weak};

pub(crate) struct Sink(pub(crate) Weak<Core>);

impl Sink {
    fn known(core: &Core, node: &NodeId) -> Option<Arc<Peer>> {
        NodeName::known(node.as_str()).and_then(|node| core.find(node))
    }

    fn tell(&self, node: &NodeId, told: Told) {
        if let Some(core) = self.0.upgrade()
            && let Some(peer) = Self::known(&core, node)
        {
            peer.told(told);
        }
    }
}

/// Returns the name of a stranger: parsed names are bounded.
fn name(node: &NodeId) -> Option<NodeName> {
    node.as_str().parse().ok()
}

impl EngineSink for Sink {
    fn frame(&self, from: &NodeId, frame: Bytes) {
        let Some(core) = self.0.upgrade() else {
            return;
        };
        if let Some(peer) = Self::known(&core, from) {
            return peer.told(Told::Frame(frame));
        }
        let identity = &core.base.identity;
        let half = match Frame::parse(&frame) {
            Ok(Frame::Hello(hello)) => {
                let is_member = hello.name == *from
                    && *hello.cluster == *identity.cluster
                    && identity.proof.check(&hello.said, &hello.proof);
                let peer = name(from).filter(|_| is_member);
                if let Some(peer) = peer.and_then(|name| core.reach(name)) {
                    peer.told(Told::Frame(frame));
                }
                return;
            }
            Ok(Frame::Data { to, from, .. } | Frame::Ack { to, from, .. }) => Some((to, from)),
            Ok(Frame::Reset { .. } | Frame::Bye { .. }) | Err(_) => None,
        };
        if let Some((to, from_half)) = half {
            let present = core.base.halves.incarnation();
            let notice = match to.incarnation == present {
                true => Notice::Unknown,
                false => Notice::Restarted(present),
            };
            let reset = Frame::Reset {
                to: from_half,
                notice,
            };
            // A lost answer is asked for again.
            let _sent = core.base.engine.send(from, Lane::Control, reset.encode());
        }
    }

    fn appeared(&self, node: &NodeId) {
        let Some(core) = self.0.upgrade() else {
            return;
        };
        if let Some(peer) = name(node).and_then(|node| core.reach(node)) {
            peer.told(Told::Appeared);
        }
    }

    fn vanished(&self, node: &NodeId) {
        self.tell(node, Told::Vanished);
    }

    fn writable(&self, to: &NodeId) {
        self.tell(to, Told::Writable);
    }
}
