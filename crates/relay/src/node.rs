//! A named node and its hosts.

use crate::error::AddError;
use crate::passing::{PassOn, TARGET, refused};
use crate::table::Table;
use ganger_proc_api::internal::Hop;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, HostName, NodeName, Pid, SendError, SendErrorKind,
};
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A node: passes each envelope to the host of its target.
///
/// Hosts may be added and removed while envelopes are sent. A PID without a node means a PID of
/// this node. The host gets the envelope as it was sent, so it must accept both forms.
///
/// ```
/// use ganger_proc_api::{
///     HostName, Message, NodeName, EnvelopeReceiver, SendErrorKind, receiver_fn,
/// };
/// use ganger_relay::Node;
/// use std::sync::Arc;
///
/// let node = Node::new(NodeName::new("here")?);
/// node.add_host(HostName::new("sink")?, Arc::new(receiver_fn(|_| Ok(()))))?;
///
/// let send = |target: &str| node.send(Message::new("hello", ()).to(target.parse().unwrap()));
/// assert!(send("{sink|1}").is_ok());
/// assert!(send("{here@sink|1}").is_ok());
/// assert_eq!(send("{other|1}").unwrap_err().kind, SendErrorKind::HostNotFound);
/// assert_eq!(send("{there@sink|1}").unwrap_err().kind, SendErrorKind::NodeNotFound);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Node {
    name: NodeName,
    hosts: Table<HostName, Arc<dyn EnvelopeReceiver>>,
}

impl Node {
    /// Creates a node without hosts.
    #[must_use]
    pub fn new(name: NodeName) -> Self {
        Self {
            name,
            hosts: Table::new(),
        }
    }

    /// Returns the node's name.
    #[must_use]
    pub fn name(&self) -> NodeName {
        self.name
    }

    /// Adds a host, which now gets the envelopes for its PIDs. O(1).
    ///
    /// # Errors
    /// [`AddError::HostExists`], with `receiver` inside, if the node has a host with this name.
    pub fn add_host(
        &self,
        host: HostName,
        receiver: Arc<dyn EnvelopeReceiver>,
    ) -> Result<(), AddError> {
        let node = self.name;
        match self.hosts.insert(host, receiver) {
            Ok(()) => {
                tracing::debug!(target: TARGET, %node, %host, "host added");
                Ok(())
            }
            Err(receiver) => Err(AddError::HostExists {
                node,
                host,
                receiver,
            }),
        }
    }

    /// Removes a host and returns it. `None` if the node has no host with this name. O(1).
    ///
    /// Does not wait for sends under way, which may still reach the host.
    pub fn remove_host(&self, host: HostName) -> Option<Arc<dyn EnvelopeReceiver>> {
        let receiver = self.hosts.remove(host)?;
        tracing::debug!(target: TARGET, node = %self.name, %host, "host removed");
        Some(receiver)
    }

    /// Returns the names of the hosts, in the order of their text. O(n log n).
    #[must_use]
    pub fn hosts(&self) -> Vec<HostName> {
        let mut hosts = self.hosts.keys();
        hosts.sort_by_cached_key(|host| host.as_str());
        hosts
    }

    #[inline]
    fn pass(&self, envelope: Envelope, pass_on: PassOn) -> Result<(), SendError> {
        let target = envelope.target;
        if target.node().is_some_and(|node| node != self.name) {
            return Err(refused(SendErrorKind::NodeNotFound, envelope));
        }
        let Some(host) = self.hosts.get(target.host()) else {
            return Err(refused(SendErrorKind::HostNotFound, envelope));
        };
        let Some(_hop) = Hop::between_hosts() else {
            tracing::warn!(
                target: TARGET, node = %self.name, pid = %target,
                "hosts pass an envelope in a circle"
            );
            return Err(refused(SendErrorKind::HostNotFound, envelope));
        };
        pass_on(&*host, envelope)
    }
}

impl EnvelopeReceiver for Node {
    /// Passes the envelope to its target's host. O(1), plus the work of the host.
    ///
    /// # Errors
    /// [`SendErrorKind::NodeNotFound`] for a PID of another node. [`SendErrorKind::HostNotFound`]
    /// if the node does not have the host, or if hosts form a routing loop. Else the host's own
    /// error.
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(envelope, |to, envelope| to.send(envelope))
    }

    /// Sends a control message, as [`send`](Self::send) does. The host gets it as a control
    /// message.
    fn send_control(&self, envelope: Envelope) -> Result<(), SendError> {
        self.pass(envelope, |to, envelope| to.send_control(envelope))
    }

    /// Asks the host of the target.
    fn room(&self, target: Pid, waker: Waker) -> bool {
        let is_here = target.node().is_none_or(|node| node == self.name);
        let host = self.hosts.get(target.host()).filter(|_| is_here);
        let Some(_hop) = Hop::between_hosts() else {
            return false;
        };
        host.is_some_and(|host| host.room(target, waker))
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("name", &self.name)
            .field("hosts", &self.hosts())
            .finish()
    }
}
