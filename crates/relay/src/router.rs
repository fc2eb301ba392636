//! Routes from the local node to all other nodes.

use crate::error::AddError;
use crate::node::Node;
use crate::passing::{PassOn, TARGET, refused};
use crate::table::Table;
use ganger_proc_api::internal::Hop;
use ganger_proc_api::{Envelope, EnvelopeReceiver, NodeName, Pid, SendError, SendErrorKind};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Waker;

/// Routes each envelope: to the local node, else to a registered peer, else to the fallback.
///
/// A **peer** takes the envelopes for one other node. A peer is the end of a connection, or the
/// router of a node in the same program. The **fallback** takes the envelopes for nodes that are
/// not peers. The fallback may open a connection, or pass the envelope to a node with more routes.
/// The first responsible receiver gives the final answer: if it refuses, the router does not try
/// the next.
///
/// A source without a node belongs to the local node. An envelope that leaves the node gets the
/// node into its source, so receivers anywhere can answer it. PIDs in the payloads are sent
/// unchanged: see [`Pid::with_node`](ganger_proc_api::Pid::with_node).
///
/// Peers and the fallback may be added and removed while envelopes are sent. Envelopes of one
/// sender for one PID stay in order while their route stays the same. Code that changes a route
/// must first see that the old route is empty.
///
/// Routers that are each other's fallback form a routing loop for nodes unknown to both. After 32
/// routers on one thread, the envelope is refused with `NodeNotFound`. Two routers that are each
/// other's peers keep each other alive. Let one of them hold the other as a
/// [`Weak`](std::sync::Weak), which is a receiver, too.
///
/// ```
/// use ganger_proc_api::{HostName, Message, NodeName, SendErrorKind};
/// use ganger_relay::{ChannelHost, Node, EnvelopeReceiver, Router};
/// use std::sync::Arc;
///
/// let (here, there) = (NodeName::new("here")?, NodeName::new("there")?);
/// let router = Router::new(Arc::new(Node::new(here)));
/// let other = Router::new(Arc::new(Node::new(there)));
///
/// let channels = Arc::new(ChannelHost::new(there, HostName::new("box")?));
/// other.local().add_host(channels.host(), channels.clone())?;
/// let inbox = channels.open();
///
/// let error = router.send(Message::new("hello", ()).to(inbox.pid())).unwrap_err();
/// assert_eq!(error.kind, SendErrorKind::NodeNotFound);
///
/// router.add_peer(there, Arc::new(other))?;
/// router.send(error.into_envelope())?;
/// assert_eq!(inbox.recv()?.message.topic, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Router {
    local: Arc<Node>,
    peers: Table<NodeName, Arc<dyn EnvelopeReceiver>>,
    /// The lock is held only to clone or replace the pointer.
    fallback: RwLock<Option<Arc<dyn EnvelopeReceiver>>>,
}

impl Router {
    /// Creates a router without peers and without a fallback.
    #[must_use]
    pub fn new(local: Arc<Node>) -> Self {
        Self {
            local,
            peers: Table::new(),
            fallback: RwLock::new(None),
        }
    }

    /// Returns the local node.
    #[must_use]
    pub fn local(&self) -> &Arc<Node> {
        &self.local
    }

    /// Adds a peer, which now gets the envelopes for the node `peer`. O(1).
    ///
    /// # Errors
    /// With `receiver` inside: [`AddError::PeerExists`] if the router has a peer with this name,
    /// [`AddError::LocalNode`] if `peer` is the local node's name.
    pub fn add_peer(
        &self,
        peer: NodeName,
        receiver: Arc<dyn EnvelopeReceiver>,
    ) -> Result<(), AddError> {
        if peer == self.local.name() {
            let node = peer;
            return Err(AddError::LocalNode { node, receiver });
        }
        match self.peers.insert(peer, receiver) {
            Ok(()) => {
                tracing::debug!(target: TARGET, node = %self.local.name(), %peer, "peer added");
                Ok(())
            }
            Err(receiver) => Err(AddError::PeerExists { peer, receiver }),
        }
    }

    /// Removes a peer and returns it. `None` if the router has no peer with this name. O(1).
    ///
    /// Does not wait for sends under way, which may still reach the peer.
    pub fn remove_peer(&self, peer: NodeName) -> Option<Arc<dyn EnvelopeReceiver>> {
        let receiver = self.peers.remove(peer)?;
        tracing::debug!(target: TARGET, node = %self.local.name(), %peer, "peer removed");
        Some(receiver)
    }

    /// Returns the names of the peers, in the order of their text. O(n log n).
    #[must_use]
    pub fn peers(&self) -> Vec<NodeName> {
        let mut peers = self.peers.keys();
        peers.sort_by_cached_key(|peer| peer.as_str());
        peers
    }

    /// Sets the receiver for nodes that are not peers, and returns the previous fallback.
    pub fn set_fallback(
        &self,
        receiver: Arc<dyn EnvelopeReceiver>,
    ) -> Option<Arc<dyn EnvelopeReceiver>> {
        let old = self.replace_fallback(Some(receiver));
        tracing::debug!(target: TARGET, node = %self.local.name(), "internode fallback set");
        old
    }

    /// Removes the receiver for nodes that are not peers, and returns it.
    pub fn clear_fallback(&self) -> Option<Arc<dyn EnvelopeReceiver>> {
        let old = self.replace_fallback(None)?;
        tracing::debug!(target: TARGET, node = %self.local.name(), "internode fallback cleared");
        Some(old)
    }

    fn replace_fallback(
        &self,
        new: Option<Arc<dyn EnvelopeReceiver>>,
    ) -> Option<Arc<dyn EnvelopeReceiver>> {
        let mut fallback = self
            .fallback
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *fallback, new)
    }

    fn fallback(&self) -> Option<Arc<dyn EnvelopeReceiver>> {
        self.fallback
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    #[inline]
    fn pass(&self, envelope: Envelope, pass_on: PassOn) -> Result<(), SendError> {
        let node = match envelope.target.node() {
            Some(node) if node != self.local.name() => node,
            _ => return pass_on(&*self.local, envelope),
        };
        match self.peers.get(node).or_else(|| self.fallback()) {
            Some(receiver) => self.pass_out(envelope, &*receiver, pass_on),
            None => Err(refused(SendErrorKind::NodeNotFound, envelope)),
        }
    }

    /// Passes an envelope to another node. The source gets this node's name: without a node it
    /// would mean a process of the node that reads it.
    fn pass_out(
        &self,
        mut envelope: Envelope,
        receiver: &dyn EnvelopeReceiver,
        pass_on: PassOn,
    ) -> Result<(), SendError> {
        let Some(_hop) = Hop::between_routers() else {
            tracing::warn!(
                target: TARGET, node = %self.local.name(), pid = %envelope.target,
                "routers pass an envelope in a circle"
            );
            return Err(refused(SendErrorKind::NodeNotFound, envelope));
        };
        let Some(source) = envelope.message.source.filter(|it| it.node().is_none()) else {
            return pass_on(receiver, envelope);
        };
        envelope.message.source = Some(source.with_node(Some(self.local.name())));
        pass_on(receiver, envelope).map_err(|error| {
            // The sender gets the envelope back as it was sent.
            let kind = error.kind;
            let mut envelope = error.into_envelope();
            envelope.message.source = Some(source);
            refused(kind, envelope)
        })
    }
}

impl EnvelopeReceiver for Router {
    /// Passes the envelope to the local node, a peer or the fallback. O(1), plus the work of this
    /// receiver.
    ///
    /// # Errors
    /// [`SendErrorKind::NodeNotFound`] if the target's node is neither local nor a peer and the
    /// router has no fallback, or if routers form a loop. Else the error of the receiver.
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(envelope, |to, envelope| to.send(envelope))
    }

    /// Sends a control message, as [`send`](Self::send) does. The receiver gets it as a control
    /// message.
    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(envelope, |to, envelope| to.send_control(envelope))
    }

    /// Asks the receiver that [`send`](Self::send) would pass an envelope for the target to.
    fn room(&self, target: Pid, waker: Waker) -> bool {
        let node = match target.node() {
            Some(node) if node != self.local.name() => node,
            _ => return self.local.room(target, waker),
        };
        let Some(_hop) = Hop::between_routers() else {
            return false;
        };
        let receiver = self.peers.get(node).or_else(|| self.fallback());
        receiver.is_some_and(|receiver| receiver.room(target, waker))
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("local", &self.local)
            .field("peers", &self.peers())
            .field("fallback", &self.fallback().is_some())
            .finish()
    }
}
