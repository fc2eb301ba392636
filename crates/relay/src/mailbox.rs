//! Channels for PIDs.
//!
//! **Problem.** Code outside of any process wants to be answered, tests want to see what is sent,
//! and a link to another node wants the packages of one PID in a queue: each needs a PID whose
//! packages end in a channel. Senders must not notice: the PID may get and lose its channel at any
//! moment, and nothing may be lost on the way.
//!
//! **Rejected.** Ids of a scheduler's for what has no process: two allocators of one name space, or
//! a lock between them. A mailbox has a host to itself instead, or stands in front of another
//! receiver and is told the PIDs. Keys that are whole PIDs: `{host|1}` and `{node@host|1}` would be
//! two. A table that each channel's receiving end keeps alive: the table holds the sending ends, so
//! that a receiver would wait for ever for a mailbox that is gone.
//!
//! **Sender**
//! 1. Look the channel up by id. None: whatever is behind the mailbox has the package.
//! 2. Without a lock, push. The channel may have been closed since: `Closed`, package inside.
//!
//! **Receiver that goes** (dropped or closed)
//! 1. Take its own channel out of the table, and no other: the PID may be another receiver's by
//!    now. Later sends are `NotFound`.
//! 2. Close the channel: a sender that is between its two steps gets its package back.
//!
//! **Detaching from outside** does step 1 alone. A sender that is between its two steps still holds
//! the sending end, so that the receiver sees the end of the channel behind that package.
//!
//! **Why nothing is lost.** A push either comes before the close, and is among what the receiver
//! gets, or after it and is refused. **Order**: one sender's pushes into one channel are in its
//! order; after the next attachment they go to the next channel.

use crate::empty_host::Place;
use crate::receiver::refused;
use crate::table::Table;
use crate::{AttachError, EmptyHost, MailboxReceiver, Receiver, TARGET};
use ganger_mpsc::Sender;
use ganger_proc_api::{HostName, NodeName, Package, Pid, SendError, SendErrorKind};
use ganger_sync::atomic::{AtomicU64, Ordering};
use std::fmt;
use std::sync::{Arc, Weak};

/// A host that hands the packages of PIDs to channels.
///
/// With a host name of its own ([`new`](Self::new)) it also gives out PIDs ([`open`](Self::open)).
/// It can as well stand in front of another receiver of the same host
/// ([`in_front_of`](Self::in_front_of)), such as a scheduler: packages of the PIDs that are attached
/// go to their channels, all others to that receiver.
///
/// A PID without a node and one with the mailbox's node are the same to it. When the mailbox is
/// dropped, its receivers get what is left in their channels and then see the end.
///
/// ```
/// use ganger_proc_api::{HostName, Message, NodeName, Payload};
/// use ganger_relay::{Mailbox, Node, Receiver};
/// use std::sync::Arc;
///
/// let node = Node::new(NodeName::new("here")?);
/// let mailbox = Arc::new(Mailbox::new(node.name(), HostName::new("box")?));
/// node.add_host(mailbox.host(), mailbox.clone())?;
///
/// let inbox = mailbox.open();
/// node.send(Message::new("answer", 42_u64).to(inbox.pid()))?;
/// let answer = inbox.recv()?.message;
/// assert_eq!(answer.payloads.first().and_then(Payload::as_u64), Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Mailbox<R = EmptyHost> {
    channels: Arc<Channels>,
    behind: R,
    next_id: AtomicU64,
}

impl Mailbox {
    /// The host `host` of `node`: no other receiver has that name there. Add it to the node under
    /// that name.
    #[must_use]
    pub fn new(node: NodeName, host: HostName) -> Self {
        Self::in_front_of(EmptyHost::new(node, host), node, host)
    }

    /// A channel for a PID that nobody else has, with the node in it, so that it can be sent as the
    /// source of a message to any node. O(1), one allocation or two.
    ///
    /// The ids count from 1 and are not given twice; those that are attached by hand at the time are
    /// left out.
    #[must_use]
    pub fn open(&self) -> MailboxReceiver {
        let Place { node, host } = self.channels.place;
        loop {
            // Ordering: Relaxed, because only the number counts: whoever learns the PID has it
            // through something that orders it.
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            if let Ok(receiver) = self.attach(Pid::on_node(node, host, id)) {
                return receiver;
            }
        }
    }
}

impl<R: Receiver> Mailbox<R> {
    /// A mailbox for some of the PIDs of `host` on `node`, in front of `behind`, which has all the
    /// others. Add it to the node in the place of `behind`.
    ///
    /// An attached PID hides one of the same number behind it: it is for the caller to attach only
    /// PIDs that `behind` does not give out, or those whose packages are to be diverted. What is sent behind it does not
    /// come by here, unless `behind` passes it on, as a scheduler does that is built with `route_unknown`.
    ///
    /// ```
    /// use ganger_proc_api::{HostName, Message, NodeName, SendError, SendErrorKind};
    /// use ganger_relay::{Mailbox, Receiver, from_fn};
    ///
    /// let full = from_fn(|package| Err(SendError::new(SendErrorKind::Full, package)));
    /// let mailbox = Mailbox::in_front_of(full, NodeName::new("here")?, HostName::new("main")?);
    /// let inbox = mailbox.attach("{main|7}".parse()?)?;
    ///
    /// mailbox.send(Message::new("to the channel", ()).to("{main|7}".parse()?))?;
    /// assert_eq!(inbox.recv()?.message.topic, "to the channel");
    /// let error = mailbox.send(Message::new("behind", ()).to("{main|8}".parse()?)).unwrap_err();
    /// assert_eq!(error.kind, SendErrorKind::Full);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn in_front_of(behind: R, node: NodeName, host: HostName) -> Self {
        let place = Place { node, host };
        let by_id = Table::new();
        Self {
            channels: Arc::new(Channels { place, by_id }),
            behind,
            next_id: AtomicU64::new(1),
        }
    }

    /// The node that the mailbox is for.
    #[must_use]
    pub fn node(&self) -> NodeName {
        self.channels.place.node
    }

    /// The host that the mailbox is, or is a part of.
    #[must_use]
    pub fn host(&self) -> HostName {
        self.channels.place.host
    }

    /// From now on the packages for `pid` go to a channel: here is its receiving end. O(1).
    ///
    /// # Errors
    /// [`AttachError::AlreadyAttached`] when `pid` has a receiver, [`AttachError::Elsewhere`] when
    /// it names another node or host than the mailbox's.
    pub fn attach(&self, pid: Pid) -> Result<MailboxReceiver, AttachError> {
        let Place { node, host } = self.channels.place;
        if !self.channels.place.has(pid) {
            return Err(AttachError::Elsewhere { pid, node, host });
        }
        let (sender, packages) = ganger_mpsc::channel();
        let sender = Arc::new(sender);
        let attachment = Attachment {
            pid,
            channels: Arc::downgrade(&self.channels),
            sender: Arc::downgrade(&sender),
        };
        if self.channels.by_id.insert(pid.id(), sender).is_err() {
            return Err(AttachError::AlreadyAttached(pid));
        }
        tracing::debug!(target: TARGET, %pid, "channel attached");
        Ok(MailboxReceiver::new(attachment, packages))
    }

    /// Ends the attachment of `pid`, and returns whether there was one. Its receiver gets what has
    /// been sent, and then sees the end; the PID can be attached again at once. O(1).
    pub fn detach(&self, pid: Pid) -> bool {
        let is_removed =
            self.channels.place.has(pid) && self.channels.by_id.remove(pid.id()).is_some();
        if is_removed {
            tracing::debug!(target: TARGET, %pid, "channel detached");
        }
        is_removed
    }

    /// The PIDs that have channels, each with its node, in the order of their ids. O(n log n).
    #[must_use]
    pub fn attached(&self) -> Vec<Pid> {
        let Place { node, host } = self.channels.place;
        let mut ids = self.channels.by_id.keys();
        ids.sort_unstable();
        ids.into_iter()
            .map(|id| Pid::on_node(node, host, id))
            .collect()
    }
}

impl<R: Receiver> Receiver for Mailbox<R> {
    /// Puts the package into its target's channel, or hands it to the receiver behind. O(1).
    ///
    /// # Errors
    /// [`SendErrorKind::Closed`] when the channel's receiver goes at this very moment; for a PID
    /// without a channel, what the receiver behind answers: [`SendErrorKind::NotFound`] from an
    /// [`EmptyHost`].
    fn send(&self, package: Package) -> Result<(), SendError> {
        match self.channels.find(package.target) {
            Some(sender) => push(&sender, package),
            None => self.behind.send(package),
        }
    }

    /// As [`send`](Self::send). In a channel it stays behind what was sent before it, like any other; the
    /// receiver behind gets it as a control message.
    fn send_control(&self, package: Package) -> Result<(), SendError> {
        match self.channels.find(package.target) {
            Some(sender) => push(&sender, package),
            None => self.behind.send_control(package),
        }
    }
}

/// The sender's second step: the receiver may have gone since the first.
fn push(sender: &Sender<Package>, package: Package) -> Result<(), SendError> {
    sender
        .send(package)
        .map_err(|error| refused(SendErrorKind::Closed, error.into_inner()))
}

impl<R> fmt::Debug for Mailbox<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { node, host } = self.channels.place;
        f.debug_struct("Mailbox")
            .field("node", &node)
            .field("host", &host)
            .finish_non_exhaustive()
    }
}

/// The sending ends. The mailbox alone keeps them alive.
pub(crate) struct Channels {
    place: Place,
    by_id: Table<u64, Arc<Sender<Package>>>,
}

impl Channels {
    fn find(&self, pid: Pid) -> Option<Arc<Sender<Package>>> {
        if self.place.has(pid) {
            self.by_id.get(pid.id())
        } else {
            None
        }
    }
}

/// A channel's place in the table, as its receiving end knows it.
pub(crate) struct Attachment {
    pub(crate) pid: Pid,
    channels: Weak<Channels>,
    /// Tells this channel from a later one of the same PID; its address is not given again while
    /// this lives.
    sender: Weak<Sender<Package>>,
}

impl Attachment {
    /// Takes the channel out of the table, unless that has happened already.
    pub(crate) fn end(&self) {
        let Some(channels) = self.channels.upgrade() else {
            return;
        };
        let is_own = |sender: &Arc<_>| std::ptr::eq(Arc::as_ptr(sender), self.sender.as_ptr());
        let own = channels.by_id.remove_if(self.pid.id(), is_own);
        if own.is_some() {
            tracing::debug!(target: TARGET, pid = %self.pid, "channel detached");
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::{Message, Payload};

    // pins: R2
    #[test]
    fn a_receiver_that_goes_between_a_senders_two_steps_refuses_the_package() {
        let mailbox = Mailbox::new(
            NodeName::new("here").unwrap(),
            HostName::new("box").unwrap(),
        );
        let inbox = mailbox.open();
        let pid = inbox.pid();
        let found = mailbox.channels.find(pid).unwrap();
        drop(inbox);
        let error = push(&found, Message::new("late", 7_u64).to(pid)).unwrap_err();
        assert_eq!(error.kind, SendErrorKind::Closed);
        let package = error.into_package();
        assert_eq!(
            (package.target, package.message.topic),
            (pid, "late".into())
        );
        assert_eq!(
            package.message.payloads.first().and_then(Payload::as_u64),
            Some(7)
        );
    }

    // pins: R5
    #[test]
    fn a_package_between_its_two_steps_holds_the_end_of_a_detached_channel_back() {
        let mailbox = Mailbox::new(
            NodeName::new("here").unwrap(),
            HostName::new("box").unwrap(),
        );
        let inbox = mailbox.open();
        let found = mailbox.channels.find(inbox.pid()).unwrap();
        mailbox.detach(inbox.pid());
        assert!(!inbox.is_closed());
        push(&found, Message::new("last", ()).to(inbox.pid())).unwrap();
        drop(found);
        assert_eq!(inbox.iter().count(), 1);
    }
}
