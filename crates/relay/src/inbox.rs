//! The receiving end of a PID's channel.

use crate::channels::Attachment;
use ganger_mpsc::{Batch, Iter, RecvError, RecvTimeoutError, TryRecvError};
use ganger_proc_api::{Envelope, Pid};
use std::fmt;
use std::time::Duration;

/// Receives the envelopes of one PID: see [`ChannelHost::attach`](crate::ChannelHost::attach) and
/// [`ChannelHost::open`](crate::ChannelHost::open).
///
/// Only one thread at a time uses an inbox. Envelopes of one sender arrive in the order of their
/// sends. Dropping the inbox detaches the PID and drops the envelopes left in it.
/// [`close`](Self::close) returns them instead.
pub struct Inbox {
    attachment: Attachment,
    envelopes: ganger_mpsc::Receiver<Envelope>,
}

impl Inbox {
    pub(crate) fn new(attachment: Attachment, envelopes: ganger_mpsc::Receiver<Envelope>) -> Self {
        Self {
            attachment,
            envelopes,
        }
    }

    /// Returns the PID as it was attached.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.attachment.pid
    }

    /// Takes the oldest envelope, if the inbox has one. Never blocks.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the inbox is empty. [`TryRecvError::Disconnected`] if it is
    /// empty, and the PID has been detached or the channel host dropped.
    pub fn try_recv(&self) -> Result<Envelope, TryRecvError> {
        self.envelopes.try_recv()
    }

    /// Takes the oldest envelope; blocks while the inbox is empty.
    ///
    /// # Errors
    /// [`RecvError`] if the inbox is empty, and the PID has been detached or the channel host
    /// dropped.
    pub fn recv(&self) -> Result<Envelope, RecvError> {
        self.envelopes.recv()
    }

    /// Takes the oldest envelope; blocks while the inbox is empty, but no longer than `timeout`.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] if no envelope came in time.
    /// [`RecvTimeoutError::Disconnected`] if the inbox is empty, and the PID has been detached or
    /// the channel host dropped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Envelope, RecvTimeoutError> {
        self.envelopes.recv_timeout(timeout)
    }

    /// Takes all envelopes that have arrived, the oldest first. Never blocks. O(n).
    #[must_use]
    pub fn drain(&self) -> Batch<Envelope> {
        self.envelopes.drain()
    }

    /// Returns the envelopes as they arrive. Blocks between them, and ends when
    /// [`recv`](Self::recv) fails.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, Envelope> {
        self.envelopes.iter()
    }

    /// Returns whether no envelope can arrive any more: the PID has been detached or the channel
    /// host dropped, and no send is under way. Envelopes may still wait in the inbox. Once `true`,
    /// it stays `true`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.envelopes.is_closed()
    }

    /// Detaches the PID and returns the envelopes left in the inbox. Never blocks. O(n).
    ///
    /// Later senders get their envelopes back.
    ///
    /// ```
    /// use ganger_proc_api::{HostName, Message, NodeName, SendErrorKind};
    /// use ganger_relay::{ChannelHost, EnvelopeReceiver};
    ///
    /// let channels = ChannelHost::new(NodeName::new("here")?, HostName::new("box")?);
    /// let inbox = channels.open();
    /// let pid = inbox.pid();
    /// channels.send(Message::new("one", ()).to(pid))?;
    /// assert_eq!(inbox.close().len(), 1);
    /// let error = channels.send(Message::new("two", ()).to(pid)).unwrap_err();
    /// assert_eq!(error.kind, SendErrorKind::NotFound);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "dropping the receiver frees the envelopes as well"]
    pub fn close(self) -> Batch<Envelope> {
        self.attachment.end();
        self.envelopes.close()
    }
}

impl Drop for Inbox {
    /// Detaches the PID before the channel closes, so later senders do not find a closed channel.
    fn drop(&mut self) {
        self.attachment.end();
    }
}

impl<'a> IntoIterator for &'a Inbox {
    type Item = Envelope;
    type IntoIter = Iter<'a, Envelope>;

    fn into_iter(self) -> Iter<'a, Envelope> {
        self.iter()
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("pid", &self.pid())
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
