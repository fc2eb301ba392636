//! The channels of a channel host, by the ids of their PIDs.

use crate::host_address::HostAddress;
use crate::receiver::{TARGET, refused};
use crate::table::Table;
use ganger_mpsc::Sender;
use ganger_proc_api::{Package, Pid, SendError, SendErrorKind};
use std::sync::{Arc, Weak};

/// The sending ends. The channel host alone keeps them alive.
pub(crate) struct Channels {
    pub(crate) address: HostAddress,
    pub(crate) by_id: Table<u64, Arc<Sender<Package>>>,
}

impl Channels {
    /// The sender's first step: the channel of `pid`.
    pub(crate) fn find(&self, pid: Pid) -> Option<Arc<Sender<Package>>> {
        if self.address.has(pid) {
            self.by_id.get(pid.id())
        } else {
            None
        }
    }
}

/// A channel's entry in the table, as the receiving end knows it.
pub(crate) struct Attachment {
    pub(crate) pid: Pid,
    channels: Weak<Channels>,
    /// Tells this channel from a later one of the same PID. While this pointer exists, no other
    /// channel gets its address.
    sender: Weak<Sender<Package>>,
}

impl Attachment {
    /// The entry of `sender` in `channels`.
    pub(crate) fn new(pid: Pid, channels: &Arc<Channels>, sender: &Arc<Sender<Package>>) -> Self {
        Self {
            pid,
            channels: Arc::downgrade(channels),
            sender: Arc::downgrade(sender),
        }
    }

    /// Takes the channel out of the table, if it is still there.
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

/// The sender's second step. The receiver may have closed the channel since the first one.
pub(crate) fn push(sender: &Sender<Package>, package: Package) -> Result<(), SendError> {
    sender
        .send(package)
        .map_err(|error| refused(SendErrorKind::Closed, error.into_inner()))
}
