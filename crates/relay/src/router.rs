//! From the local node to all the others.

use crate::hop::Hop;
use crate::receiver::{PassOn, refused};
use crate::table::Table;
use crate::{AddError, Node, Receiver, TARGET};
use ganger_proc_api::{NodeName, Package, SendError, SendErrorKind};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Finds the way for each package: the local node, else a registered peer, else the fallback.
///
/// A **peer** takes the packages for one other node: the end of a connection, or that node's router
/// when it is in the same program. The **fallback** takes packages for nodes that are no peers; it
/// could open a connection, or pass them to a node that knows more. Whoever takes a package gives
/// the final answer: the next one is not asked.
///
/// A source without a node is one of the local node: a package that leaves it has that node in its source, so
/// that it can be answered from anywhere. PIDs among the payloads are sent as they are:
/// see [`Pid::with_node`](ganger_proc_api::Pid::with_node).
///
/// Peers and the fallback come and go while packages are sent. Packages of one sender for one PID
/// stay in order as long as their way stays the same; it is for those who change a way to see that
/// the old one is empty.
///
/// Routers that are each other's fallback pass a package for a node that neither knows back and forth: after
/// 32 on one thread it is refused with `NodeNotFound`, and what they try otherwise then is refused sooner. Two that are each other's peers keep each other in
/// memory: one of them has the other as a [`Weak`](std::sync::Weak), which is a receiver, too.
///
/// ```
/// use ganger_proc_api::{HostName, Message, NodeName, SendErrorKind};
/// use ganger_relay::{Mailbox, Node, Receiver, Router};
/// use std::sync::Arc;
///
/// let (here, there) = (NodeName::new("here")?, NodeName::new("there")?);
/// let router = Router::new(Arc::new(Node::new(here)));
/// let other = Router::new(Arc::new(Node::new(there)));
///
/// let mailbox = Arc::new(Mailbox::new(there, HostName::new("box")?));
/// other.local().add_host(mailbox.host(), mailbox.clone())?;
/// let inbox = mailbox.open();
///
/// let error = router.send(Message::new("hello", ()).to(inbox.pid())).unwrap_err();
/// assert_eq!(error.kind, SendErrorKind::NodeNotFound);
///
/// router.add_peer(there, Arc::new(other))?;
/// router.send(error.into_package())?;
/// assert_eq!(inbox.recv()?.message.topic, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Router {
    local: Arc<Node>,
    peers: Table<NodeName, Arc<dyn Receiver>>,
    /// Locked for as long as it takes to clone or replace the pointer.
    fallback: RwLock<Option<Arc<dyn Receiver>>>,
}

impl Router {
    /// A router without peers and without a fallback.
    #[must_use]
    pub fn new(local: Arc<Node>) -> Self {
        Self {
            local,
            peers: Table::new(),
            fallback: RwLock::new(None),
        }
    }

    /// The local node.
    #[must_use]
    pub fn local(&self) -> &Arc<Node> {
        &self.local
    }

    /// Adds a peer: from now on it gets the packages for the node `peer`. O(1).
    ///
    /// # Errors
    /// With `receiver` inside: [`AddError::PeerExists`] when there is a peer of that name,
    /// [`AddError::LocalNode`] when it is the local node's name.
    pub fn add_peer(&self, peer: NodeName, receiver: Arc<dyn Receiver>) -> Result<(), AddError> {
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

    /// Removes a peer and returns it; `None` when there is none of that name. O(1).
    ///
    /// It does not wait for sends that are under way: those may still reach the peer.
    pub fn remove_peer(&self, peer: NodeName) -> Option<Arc<dyn Receiver>> {
        let receiver = self.peers.remove(peer)?;
        tracing::debug!(target: TARGET, node = %self.local.name(), %peer, "peer removed");
        Some(receiver)
    }

    /// The names of the peers, in the order of their text. O(n log n).
    #[must_use]
    pub fn peers(&self) -> Vec<NodeName> {
        let mut peers = self.peers.keys();
        peers.sort_by_cached_key(|peer| peer.as_str());
        peers
    }

    /// Sets what takes the packages for nodes that are no peers, and returns what did so before.
    pub fn set_fallback(&self, receiver: Arc<dyn Receiver>) -> Option<Arc<dyn Receiver>> {
        let old = self.replace_fallback(Some(receiver));
        tracing::debug!(target: TARGET, node = %self.local.name(), "internode fallback set");
        old
    }

    /// From now on nobody takes packages for nodes that are no peers. Returns what did so before.
    pub fn clear_fallback(&self) -> Option<Arc<dyn Receiver>> {
        let old = self.replace_fallback(None)?;
        tracing::debug!(target: TARGET, node = %self.local.name(), "internode fallback cleared");
        Some(old)
    }

    fn replace_fallback(&self, new: Option<Arc<dyn Receiver>>) -> Option<Arc<dyn Receiver>> {
        let mut fallback = self
            .fallback
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *fallback, new)
    }

    fn fallback(&self) -> Option<Arc<dyn Receiver>> {
        self.fallback
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    #[inline]
    fn pass(&self, package: Package, pass_on: PassOn) -> Result<(), SendError> {
        let node = match package.target.node() {
            Some(node) if node != self.local.name() => node,
            _ => return pass_on(&*self.local, package),
        };
        match self.peers.get(node).or_else(|| self.fallback()) {
            Some(receiver) => self.pass_out(package, &*receiver, pass_on),
            None => Err(refused(SendErrorKind::NodeNotFound, package)),
        }
    }

    /// Passes a package on to another node, for which its source has to say from which one it is: without a
    /// node it would be one of those that use it.
    fn pass_out(
        &self,
        mut package: Package,
        receiver: &dyn Receiver,
        pass_on: PassOn,
    ) -> Result<(), SendError> {
        let Some(_hop) = Hop::between_routers() else {
            tracing::warn!(target: TARGET, node = %self.local.name(), pid = %package.target, "routers pass a package in a circle");
            return Err(refused(SendErrorKind::NodeNotFound, package));
        };
        let Some(source) = package.message.source.filter(|it| it.node().is_none()) else {
            return pass_on(receiver, package);
        };
        package.message.source = Some(source.with_node(Some(self.local.name())));
        pass_on(receiver, package).map_err(|error| {
            // It comes back as it was.
            let kind = error.kind;
            let mut package = error.into_package();
            package.message.source = Some(source);
            refused(kind, package)
        })
    }
}

impl Receiver for Router {
    /// Hands the package on. O(1), plus what its taker does.
    ///
    /// # Errors
    /// [`SendErrorKind::NodeNotFound`] when the target's node is neither the local one nor a peer
    /// and there is no fallback, or when it has come through too many routers; else whatever the local node, the
    /// peer or the fallback answers.
    fn send(&self, package: Package) -> Result<(), SendError> {
        self.pass(package, |to, package| to.send(package))
    }

    /// As [`send`](Self::send); its taker gets it as a control message.
    fn send_control(&self, package: Package) -> Result<(), SendError> {
        self.pass(package, |to, package| to.send_control(package))
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
