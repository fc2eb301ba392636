//! Channels for PIDs.
//!
//! **Problem.** Code outside of any process wants answers, and a test wants to see the sent
//! envelopes. A link to another node wants the envelopes of one PID in a queue. Each needs a
//! channel at the end of a PID. A PID may get and lose its channel at any moment, unseen by its
//! senders, and no envelope may be lost.
//!
//! **Rejected**
//! - Ids of a scheduler for receivers without a process. Two allocators would share one name space,
//!   or a lock. Instead the channels have their own host.
//! - Whole PIDs as keys. `{host|1}` and `{node@host|1}` would be two keys for one PID.
//! - Receiving ends that keep the table alive. The table holds the sending ends, so a receiver
//!   would never see the end of its channel when the channel host is dropped.
//!
//! **Sender**
//! 1. Look the channel up by id. Without a channel, the send fails.
//! 2. Push, without a lock. If the channel has been closed meanwhile, the send fails with `Closed`.
//!
//! **Receiver that closes or is dropped**
//! 1. Take its own channel out of the table, but not the channel of a newer receiver of the same
//!    PID. Later sends fail with `NotFound`.
//! 2. Close the channel. A sender between its two steps gets its envelope back.
//!
//! **Detaching from outside** does only step 1. A sender between its two steps still holds the
//! sending end, so the receiver sees its envelope before the end of the channel.
//!
//! **Why nothing is lost.** A push before the close reaches the receiver; a push after the close is
//! refused. **Order.** The pushes of one sender into one channel keep their order. After the next
//! attachment they go to the next channel.

use crate::channels::{Attachment, Channels, push};
use crate::error::AttachError;
use crate::host_address::HostAddress;
use crate::inbox::Inbox;
use crate::passing::{TARGET, refused};
use crate::table::Table;
use ganger_proc_api::{
    Envelope, EnvelopeReceiver, HostName, NodeName, Pid, SendError, SendErrorKind,
};
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::Arc;

/// A host that hands the envelopes of PIDs to channels.
///
/// The host has a name of its own, and gives out PIDs ([`open`](Self::open)). PIDs of the caller's
/// choice can be attached, too ([`attach`](Self::attach)).
///
/// A PID without a node means a PID of the channel host's node. When the channel host is dropped,
/// its inboxes get the envelopes left in their channels, and then see the end.
///
/// ```
/// use ganger_proc_api::{HostName, Message, NodeName, Payload};
/// use ganger_relay::{ChannelHost, Node, EnvelopeReceiver};
/// use std::sync::Arc;
///
/// let node = Node::new(NodeName::new("here")?);
/// let channels = Arc::new(ChannelHost::new(node.name(), HostName::new("box")?));
/// node.add_host(channels.host(), channels.clone())?;
///
/// let inbox = channels.open();
/// node.send(Message::new("answer", 42_u64).to(inbox.pid()))?;
/// let answer = inbox.recv()?.message;
/// assert_eq!(answer.payloads.first().and_then(Payload::as_u64), Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChannelHost {
    channels: Arc<Channels>,
    next_id: AtomicU64,
}

impl ChannelHost {
    /// Creates the host `host` of `node`. Add it to the node under this name.
    #[must_use]
    pub fn new(node: NodeName, host: HostName) -> Self {
        let address = HostAddress { node, host };
        let by_id = Table::new();
        Self {
            channels: Arc::new(Channels { address, by_id }),
            next_id: AtomicU64::new(1),
        }
    }

    /// Opens a channel for a new PID. The PID includes its node, so it can be the source of a
    /// message to any node. O(1).
    ///
    /// The ids count from 1, and each is given once. Ids attached by hand are skipped.
    #[must_use]
    pub fn open(&self) -> Inbox {
        let HostAddress { node, host } = self.channels.address;
        loop {
            // Ordering: Relaxed, because only the number must be unique. The table and the channel
            // publish the rest.
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            if let Ok(receiver) = self.attach(Pid::on_node(node, host, id)) {
                return receiver;
            }
        }
    }

    /// Returns the node of the channel host.
    #[must_use]
    pub fn node(&self) -> NodeName {
        self.channels.address.node
    }

    /// Returns the name of the channel host.
    #[must_use]
    pub fn host(&self) -> HostName {
        self.channels.address.host
    }

    /// Attaches a channel to `pid`, and returns its receiving end. O(1).
    ///
    /// # Errors
    /// [`AttachError::AlreadyAttached`] if `pid` has a receiver, [`AttachError::Elsewhere`] if it
    /// names another node or host than the channel host's.
    pub fn attach(&self, pid: Pid) -> Result<Inbox, AttachError> {
        let HostAddress { node, host } = self.channels.address;
        if !self.channels.address.has(pid) {
            return Err(AttachError::Elsewhere { pid, node, host });
        }
        let (sender, envelopes) = ganger_mpsc::channel();
        let sender = Arc::new(sender);
        let attachment = Attachment::new(pid, &self.channels, &sender);
        if self.channels.by_id.insert(pid.id(), sender).is_err() {
            return Err(AttachError::AlreadyAttached(pid));
        }
        tracing::debug!(target: TARGET, %pid, "channel attached");
        Ok(Inbox::new(attachment, envelopes))
    }

    /// Ends the attachment of `pid`, and returns whether it was attached. O(1).
    ///
    /// The receiver gets the envelopes sent before, and then sees the end. The PID can be attached
    /// again at once.
    pub fn detach(&self, pid: Pid) -> bool {
        let is_removed =
            self.channels.address.has(pid) && self.channels.by_id.remove(pid.id()).is_some();
        if is_removed {
            tracing::debug!(target: TARGET, %pid, "channel detached");
        }
        is_removed
    }

    /// Returns the PIDs with channels, each with its node, in the order of their ids. O(n log n).
    #[must_use]
    pub fn attached(&self) -> Vec<Pid> {
        let HostAddress { node, host } = self.channels.address;
        let mut ids = self.channels.by_id.keys();
        ids.sort_unstable();
        ids.into_iter()
            .map(|id| Pid::on_node(node, host, id))
            .collect()
    }
}

impl EnvelopeReceiver for ChannelHost {
    /// Puts the envelope into its target's channel; a control message overtakes no other envelope
    /// there. O(1).
    ///
    /// # Errors
    /// [`SendErrorKind::Closed`] if the channel is closed during the send,
    /// [`SendErrorKind::NotFound`] without a channel, [`SendErrorKind::NodeNotFound`] or
    /// [`SendErrorKind::HostNotFound`] if the target lives elsewhere.
    fn send(&self, envelope: Envelope) -> Result<(), SendError> {
        let (target, address) = (envelope.target, self.channels.address);
        let kind = match self.channels.find(target) {
            Some(sender) => return push(&sender, envelope),
            None if address.has(target) => SendErrorKind::NotFound,
            None if address.is_node_of(target) => SendErrorKind::HostNotFound,
            None => SendErrorKind::NodeNotFound,
        };
        Err(refused(kind, envelope))
    }
}

impl fmt::Debug for ChannelHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostAddress { node, host } = self.channels.address;
        f.debug_struct("ChannelHost")
            .field("node", &node)
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{Message, Payload};

    // pins: R2
    #[test]
    fn a_receiver_that_goes_between_a_senders_two_steps_refuses_the_envelope() {
        let channels = ChannelHost::new(
            NodeName::new("here").unwrap(),
            HostName::new("box").unwrap(),
        );
        let inbox = channels.open();
        let pid = inbox.pid();
        let found = channels.channels.find(pid).unwrap();
        drop(inbox);
        let error = push(&found, Message::new("late", 7_u64).to(pid)).unwrap_err();
        assert_eq!(error.kind, SendErrorKind::Closed);
        let envelope = error.into_envelope();
        assert_eq!(
            (envelope.target, envelope.message.topic),
            (pid, "late".into())
        );
        assert_eq!(
            envelope.message.payloads.first().and_then(Payload::as_u64),
            Some(7)
        );
    }

    // pins: R5
    #[test]
    fn an_envelope_between_its_two_steps_holds_the_end_of_a_detached_channel_back() {
        let channels = ChannelHost::new(
            NodeName::new("here").unwrap(),
            HostName::new("box").unwrap(),
        );
        let inbox = channels.open();
        let found = channels.channels.find(inbox.pid()).unwrap();
        channels.detach(inbox.pid());
        assert!(!inbox.is_closed());
        push(&found, Message::new("last", ()).to(inbox.pid())).unwrap();
        drop(found);
        assert_eq!(inbox.iter().count(), 1);
    }
}
