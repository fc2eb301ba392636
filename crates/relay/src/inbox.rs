//! The receiving end of a PID's channel.

use crate::channels::Attachment;
use ganger_mpsc::{Batch, Iter, RecvError, RecvTimeoutError, TryRecvError};
use ganger_proc_api::{Package, Pid};
use std::fmt;
use std::time::Duration;

/// Receives the packages of one PID: see [`ChannelHost::attach`](crate::ChannelHost::attach) and
/// [`ChannelHost::open`](crate::ChannelHost::open).
///
/// Only one thread at a time uses an inbox. Packages of one sender arrive in the order of their
/// sends. Dropping the inbox detaches the PID and drops the packages left in it.
/// [`close`](Self::close) returns them instead.
pub struct Inbox {
    attachment: Attachment,
    packages: ganger_mpsc::Receiver<Package>,
}

impl Inbox {
    pub(crate) fn new(attachment: Attachment, packages: ganger_mpsc::Receiver<Package>) -> Self {
        Self {
            attachment,
            packages,
        }
    }

    /// Returns the PID as it was attached.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.attachment.pid
    }

    /// Takes the oldest package, if the inbox has one. Never blocks.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the inbox is empty. [`TryRecvError::Disconnected`] if it is
    /// empty, and the PID has been detached or the channel host dropped.
    pub fn try_recv(&self) -> Result<Package, TryRecvError> {
        self.packages.try_recv()
    }

    /// Takes the oldest package; blocks while the inbox is empty.
    ///
    /// # Errors
    /// [`RecvError`] if the inbox is empty, and the PID has been detached or the channel host
    /// dropped.
    pub fn recv(&self) -> Result<Package, RecvError> {
        self.packages.recv()
    }

    /// Takes the oldest package; blocks while the inbox is empty, but no longer than `timeout`.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] if no package came in time. [`RecvTimeoutError::Disconnected`]
    /// if the inbox is empty, and the PID has been detached or the channel host dropped.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Package, RecvTimeoutError> {
        self.packages.recv_timeout(timeout)
    }

    /// Takes all packages that have arrived, the oldest first. Never blocks. O(n).
    #[must_use]
    pub fn drain(&self) -> Batch<Package> {
        self.packages.drain()
    }

    /// Returns the packages as they arrive. Blocks between them, and ends when [`recv`](Self::recv)
    /// fails.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, Package> {
        self.packages.iter()
    }

    /// Returns whether no package can arrive any more: the PID has been detached or the channel
    /// host dropped, and no send is under way. Packages may still wait in the inbox. Once `true`,
    /// it stays `true`.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.packages.is_closed()
    }

    /// Detaches the PID and returns the packages left in the inbox. Never blocks. O(n).
    ///
    /// Later senders get their packages back.
    ///
    /// ```
    /// use ganger_proc_api::{HostName, Message, NodeName, SendErrorKind};
    /// use ganger_relay::{ChannelHost, PackageReceiver};
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
    #[must_use = "dropping the receiver frees the packages as well"]
    pub fn close(self) -> Batch<Package> {
        self.attachment.end();
        self.packages.close()
    }
}

impl Drop for Inbox {
    /// Detaches the PID before the channel closes, so later senders do not find a closed channel.
    fn drop(&mut self) {
        self.attachment.end();
    }
}

impl<'a> IntoIterator for &'a Inbox {
    type Item = Package;
    type IntoIter = Iter<'a, Package>;

    fn into_iter(self) -> Iter<'a, Package> {
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
