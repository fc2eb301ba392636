//! The way of an exit action to its process.
//!
//! **Problem.** Any thread may register an action with any process, while the process waits, runs
//! or ends. The end of the process runs each action once, in every order of events. A process
//! without actions must not pay for them: no word of memory, and no read-modify-write at its end.
//!
//! **Rejected.**
//! - A list in the cell, filled by requesters and closed by the end: another read-modify-write for
//!   every ending process.
//! - One table for a scheduler: a lock for all, and a look into it at every end.
//! - To look at a list of the actions after the mailbox is closed: both sides need a full fence.
//!
//! **Protocol.**
//! 1. A requester puts its action into the mailbox of the process ([`ProcessCell::ask_exit`]). No
//!    step sees it, and no limit counts it. The requester takes an action back in the same way.
//! 2. The worker that runs the process takes these requests out before the next step, in their
//!    order. It keeps the list ([`ExitActions`](crate::process::exit_actions::ExitActions)).
//! 3. The end of the process closes the mailbox and carries out the requests left there. When the
//!    process has been closed, it releases all in the list. When the process is gone, it notifies
//!    all.
//! 4. A closed mailbox refuses requests. As long as the process has its PID, a refused request goes
//!    to a table of the scheduler (`closing_inbox.rs`). The end looks there after the PID is gone.
//!    The requester puts its request there while the registry keeps the PID from going. So the end
//!    sees the request, and no fence is needed.
//! 5. If the PID is gone, the requester has its action back.
//!
//! **Proof sketch.** A mailbox takes a request or refuses it. A request leaves the mailbox once:
//! by a drain, or by the close. The table gives a request once, under its lock. So each action is
//! in one list, or refused for good. A process ends once, so each list is run once.

use crate::process::exit_action::{ExitAction, ExitKey, OfIncarnation};
use crate::process::exit_actions::ExitRequest;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::item::Item;
use ganger_proc_api::{Exclusive, Pid};

/// An exit action was not registered, because the process has ended. The action is inside.
#[derive(Debug, thiserror::Error)]
#[error("can't add an exit action to {pid}: no live process of this scheduler has that PID")]
pub struct ExitActionError {
    /// The PID.
    pub pid: Pid,
    action: Exclusive<Box<dyn ExitAction>>,
}

impl ExitActionError {
    pub(crate) fn new(pid: Pid, action: Box<dyn ExitAction>) -> Self {
        let action = Exclusive::new(action);
        Self { pid, action }
    }

    /// Returns the refused action. Neither of its calls has been made.
    #[must_use]
    pub fn into_action(self) -> Box<dyn ExitAction> {
        self.action.into_inner()
    }
}

/// An action returned to its sender.
pub(crate) type Refused = Box<dyn ExitAction>;

impl ProcessCell {
    /// Registers an action. Returns it when the process is gone.
    pub(crate) fn add_exit_action(self: &Task, action: Box<dyn ExitAction>) -> Result<(), Refused> {
        self.ask_exit(ExitRequest::Add(action)).map_err(action_of)
    }

    /// Adds an action as [`add_exit_action`](Self::add_exit_action) does. The action also comes
    /// back when the process is being closed.
    pub(crate) fn add_exit_action_in_time(
        self: &Task,
        action: Box<dyn ExitAction>,
    ) -> Result<(), Refused> {
        self.push_exit(ExitRequest::Add(action)).map_err(action_of)
    }

    /// Takes back the actions with the key, unless the process is gone.
    pub(crate) fn remove_exit_actions(self: &Task, key: ExitKey) {
        let _gone = self.ask_exit(ExitRequest::Remove(Box::new(key)));
    }

    /// Sends a request to the end, also while the process ends. Returns the request when the
    /// process is gone.
    pub(crate) fn ask_exit(self: &Task, request: ExitRequest) -> Result<(), ExitRequest> {
        let mut refused = match self.push_exit(request) {
            Ok(()) => return Ok(()),
            Err(refused) if self.is_stand_in() => return self.ask_remote(refused),
            Err(refused) => Some(refused),
        };
        let key = self.key();
        self.shared.census.registry.read(self.pid().id(), |task| {
            if task.key() == key
                && let Some(request) = refused.take()
            {
                self.shared.closing_inbox.put(key, request);
            }
        });
        refused.map_or(Ok(()), Err)
    }

    /// Asks as [`ask_exit`](Self::ask_exit) does, until the mailbox is closed.
    fn push_exit(self: &Task, request: ExitRequest) -> Result<(), ExitRequest> {
        match self.push(Item::Exit(request)) {
            Ok(()) => Ok(()),
            Err(Item::Exit(request)) => Err(request),
            Err(_) => unreachable!("the mailbox gives back what was pushed"),
        }
    }
}

fn action_of(refused: ExitRequest) -> Refused {
    match refused {
        ExitRequest::Add(action) => action,
        _ => unreachable!("the mailbox gives back what was pushed"),
    }
}

/// Adds an action of the incarnation, as [`add`] does others.
pub(crate) fn add_own(task: &Task, action: Box<dyn ExitAction>) -> Result<(), ExitActionError> {
    if task.origin.incarnation().is_none() {
        return add(task, action);
    }
    add(task, Box::new(OfIncarnation(action)))
}

pub(crate) fn add(task: &Task, action: Box<dyn ExitAction>) -> Result<(), ExitActionError> {
    let added = task.add_exit_action(action);
    added.map_err(|action| ExitActionError::new(task.target(), action))
}
