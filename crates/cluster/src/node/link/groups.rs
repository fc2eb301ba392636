//! The part of a link for groups and names: entries of directories, and broadcasts.

use super::{Link, offer};
use crate::id::Half;
use crate::node::calls::Answering;
use crate::node::publish::Published;
use crate::wire::{Known, ReadError, Reader};
use bytes::Bytes;
use ganger_proc_api::{Envelope, Pid, SendError, SendErrorKind};
use ganger_sched::{Handle, crossing};
use std::sync::Arc;

impl Link {
    /// Tells the peer of entries of the directory. True: more may go at once.
    pub(super) fn publish(&mut self) -> bool {
        self.has_listings |= self.peer.take_listings();
        let Some(half) = self.listens.filter(|_| self.has_listings) else {
            return false;
        };
        let published = self.peer.publish(half);
        self.has_listings = published != Published::All;
        published == Published::Portion
    }

    /// Tells the peer of no further entries of the directory.
    pub(super) fn unlisten(&mut self) {
        if let Some(half) = self.listens.take() {
            self.peer.base.directory.end(half);
        }
    }

    /// Removes a process of the peer from its groups and names here: the process has ended, or the
    /// session.
    pub(super) fn unlist(&mut self, scheduler: &Handle, pid: Pid) {
        self.listed.forget(&self.peer.base, scheduler, pid);
    }

    /// Passes a message to many processes, as a broadcast does: a full mailbox gets nothing.
    pub(super) fn deliver_all(
        &mut self,
        scheduler: &Handle,
        half: Half,
        targets: Vec<Pid>,
        message: &Bytes,
    ) -> Result<(), ReadError> {
        let answering = Answering::new(&self.peer, half);
        for target in targets {
            let mut reader = Reader::new(message.clone());
            let (decoder, types) = (&mut self.decoder, &self.peer.base.types);
            let context = || Arc::clone(&answering) as _;
            let within = &|decode: &dyn Fn() -> _| crossing::decode(scheduler, context(), decode);
            let mut known = Known::default();
            let (message, said) = decoder.content(&mut reader, &mut known, types, within)?;
            let replies = (Arc::clone(&answering), answering.settle(said));
            let envelope = Envelope { target, message };
            // Messages wait for the mailbox: none may pass them.
            let sent = if self.parked.has(target) {
                Err(SendError::new(SendErrorKind::Full, envelope))
            } else if scheduler.is_local(target) {
                offer(scheduler, envelope, |envelope| scheduler.send(envelope))
            } else {
                Err(SendError::new(SendErrorKind::NotFound, envelope))
            };
            if let Err(refused) = sent {
                self.refuse(scheduler, refused, &replies);
            }
        }
        Ok(())
    }
}
