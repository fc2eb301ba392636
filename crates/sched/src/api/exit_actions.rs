//! Exit actions, which crates above the scheduler register with processes.

use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::process::exit_action::{ExitAction, ExitKey};
use crate::send::exit_requests::{ExitActionError, add};
use ganger_proc_api::{Pid, Withdrawal};

impl Handle {
    /// Registers an action for the end of a process: see [`ExitAction`]. For crates that build on
    /// the scheduler. Never blocks. An action for a process of another scheduler goes to the
    /// [`Remote`](crate::Remote), if there is one, and is told of a lost connection, too.
    ///
    /// No limit of a mailbox refuses it. The process takes no step for it, and a process without
    /// exit actions pays nothing. Actions of one requester run in the order of its calls.
    ///
    /// # Errors
    /// [`ExitActionError`], with the action inside, when no live process of this scheduler has the
    /// PID, and there is no remote for it.
    pub fn add_exit_action(
        &self,
        pid: Pid,
        action: Box<dyn ExitAction>,
    ) -> Result<(), ExitActionError> {
        match self.shared.find(pid) {
            Some(task) => add(&task, action),
            None => match self.shared.elsewhere(pid) {
                Some((remote, pid)) => {
                    remote.add_exit_action(pid, action);
                    Ok(())
                }
                None => Err(ExitActionError::new(pid, action)),
            },
        }
    }

    /// Takes back all exit actions of a process with the key. Never blocks.
    ///
    /// They are dropped, and neither of their calls is made, unless the end of the process has
    /// begun to run them. A process that is gone has run them.
    pub fn remove_exit_actions(&self, pid: Pid, key: ExitKey) {
        if let Some(task) = self.shared.find(pid) {
            task.remove_exit_actions(key);
        } else if let Some((remote, pid)) = self.shared.elsewhere(pid) {
            remote.remove_exit_actions(pid, key);
        }
    }
}

impl Address {
    /// Adds an action as [`Handle::add_exit_action`] does, without a look-up.
    ///
    /// # Errors
    /// [`ExitActionError`], with the action inside, when the process has ended.
    pub fn add_exit_action(&self, action: Box<dyn ExitAction>) -> Result<(), ExitActionError> {
        add(&self.task, action)
    }

    /// Removes actions as [`Handle::remove_exit_actions`] does, without a look-up.
    pub fn remove_exit_actions(&self, key: ExitKey) {
        self.task.remove_exit_actions(key);
    }

    /// Returns the withdrawal for requests of the present incarnation of the process alone, if the
    /// process may be restarted in place: for crates that build on the scheduler.
    #[must_use]
    pub fn incarnation_end(&self) -> Option<Withdrawal> {
        self.task.incarnation_end()
    }

    /// Returns whether this thread is in a step, or in the `init`, of the process: for crates that
    /// build on the scheduler.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.task.shared.own_process_id() == self.task.id
    }
}
