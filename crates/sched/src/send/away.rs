//! The way out of a cell that stands for a process of another scheduler
//! (`runtime/cell/stand_in.rs`).
//!
//! All of this is what a sender does when a mailbox is closed, so it is cold.

use crate::process::exit_actions::ExitRequest;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::item::{self, Item};
use crate::runtime::shared::Shared;
use ganger_mpsc::{Batch, Single};
use ganger_proc_api::{Message, Pid, SendError, SendErrorKind};
use std::sync::Arc;

/// Takes a refusal apart.
fn refusal(refused: SendError) -> (SendErrorKind, Message) {
    (refused.kind, refused.into_envelope().message)
}

impl Shared {
    /// Creates a stand-in for the process of another scheduler, if there is a remote.
    #[cold]
    pub(crate) fn find_elsewhere(self: &Arc<Self>, pid: Pid) -> Option<Task> {
        let (_, pid) = self.elsewhere(pid)?;
        Some(ProcessCell::stand_in(Arc::clone(self), pid))
    }
}

impl ProcessCell {
    /// Refuses a message for an ended process of this scheduler, and hands a message for a stand-in
    /// to the router.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(
        self: &Task,
        message: Single<Item>,
    ) -> Result<(), (SendErrorKind, Single<Item>)> {
        if !self.is_stand_in() {
            return Err((self.closed(), message));
        }
        let message = item::into_message(message.into_item());
        let sent = self.shared.route(message.to(self.target()));
        sent.map_err(|refused| {
            let (kind, message) = refusal(refused);
            (kind, item::of_message(message))
        })
    }

    /// Refuses a control message as [`refuse`](Self::refuse) does others.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse_control(&self, message: Message) -> Result<(), (SendErrorKind, Message)> {
        if !self.is_stand_in() {
            return Err((self.closed(), message));
        }
        let sent = self.shared.route_control(message.to(self.target()));
        sent.map_err(refusal)
    }

    /// Sends messages away, in order, up to the first refused one.
    #[cold]
    pub(super) fn send_lot_away(
        &self,
        mut lot: Batch<Item>,
    ) -> Result<(), (SendErrorKind, Batch<Item>)> {
        while let Some(next) = lot.pop_front() {
            let envelope = item::into_message(next).to(self.target());
            if let Err(refused) = self.shared.route(envelope) {
                let (kind, message) = refusal(refused);
                let mut rest = item::of_message(message).into_batch();
                rest.append(lot);
                return Err((kind, rest));
            }
        }
        Ok(())
    }

    /// Passes a request to the end of the process on. Returns the request where no remote exists.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_remote(&self, request: ExitRequest) -> Result<(), ExitRequest> {
        // Of this scheduler, under an address of a type that the process does not take.
        if let Some(task) = self.shared.find(self.target()) {
            return task.ask_exit(request);
        }
        let Some((remote, pid)) = self.shared.elsewhere(self.target()) else {
            return Err(request);
        };
        match request {
            ExitRequest::Add(action) => remote.add_exit_action(pid, action),
            ExitRequest::Remove(key) => remote.remove_exit_actions(pid, *key),
            // For the completers of a process's own yields.
            ExitRequest::Call(_) => return Err(request),
        }
        Ok(())
    }
}
