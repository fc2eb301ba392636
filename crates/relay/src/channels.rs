//! The channels of a channel host, by the ids of their PIDs.

use crate::host_address::HostAddress;
use crate::passing::{TARGET, refused};
use crate::table::Table;
use ganger_mpsc::Sender;
use ganger_proc_api::{Envelope, Pid, SendError, SendErrorKind};
use std::sync::{Arc, Weak};

/// The sending ends. Only the channel host keeps them alive.
pub(crate) struct Channels {
    pub(crate) address: HostAddress,
    pub(crate) by_id: Table<u64, Arc<Sender<Envelope>>>,
}

impl Channels {
    /// Finds the channel of `pid`: the sender's first step.
    pub(crate) fn find(&self, pid: Pid) -> Option<Arc<Sender<Envelope>>> {
        if self.address.has(pid) {
            self.by_id.get(pid.id())
        } else {
            None
        }
    }
}

/// The receiving end's reference to its channel's entry in the table.
pub(crate) struct Attachment {
    pub(crate) pid: Pid,
    channels: Weak<Channels>,
    /// Distinguishes this channel from a later channel of the same PID. While this pointer exists,
    /// no other channel gets its address.
    sender: Weak<Sender<Envelope>>,
}

impl Attachment {
    /// Refers to the entry of `sender` in `channels`.
    pub(crate) fn new(pid: Pid, channels: &Arc<Channels>, sender: &Arc<Sender<Envelope>>) -> Self {
        Self {
            pid,
            channels: Arc::downgrade(channels),
            sender: Arc::downgrade(sender),
        }
    }

    /// Takes the channel out of the table, unless it has already been taken out.
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

/// Pushes an envelope: the sender's second step. Fails if the receiver has closed the channel since
/// the first step.
pub(crate) fn push(sender: &Sender<Envelope>, envelope: Envelope) -> Result<(), SendError> {
    sender
        .send(envelope)
        .map_err(|error| refused(SendErrorKind::Closed, error.into_inner()))
}
