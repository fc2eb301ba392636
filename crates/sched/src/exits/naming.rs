//! Names of processes: a name belongs to one process, as long as that process has not ended.
//!
//! **Problem.** A name must be free when its process has ended, in whatever way, before a monitor
//! is notified of the end. A process without a name must not pay for those with a name.
//!
//! **Rejected.**
//! - To look through the table of names at each end.
//! - To have a name lapse when it is next looked up, by a reference to the ended process. The table
//!   then keeps the cells, and the cells keep the scheduler.
//! - To have the process keep the list of its names, changed by requesters through its mailbox. A
//!   loss of a name may then arrive before its gain.
//!
//! **Protocol.** A table maps each name to its process. Another table maps each process to its
//! names. Both change under one lock (`handlers/names.rs`).
//! 1. The requester that gives a process its first name registers an exit action with it.
//! 2. Then, under the lock, the requester gives the name, unless the process has closed its
//!    mailbox.
//! 3. The exit action takes the names away, under the lock. The end of the process runs it after
//!    the close of the mailbox, and before the PID is gone.
//!
//! **Proof sketch.** A requester that has registered the action takes the lock before the end does,
//! or after it. Before the end, the end still finds the name. After the end, the requester finds
//! the mailbox closed. A requester that can't register the action, because the mailbox is closed,
//! gives no name.

use crate::handlers::names::Names;
use crate::process::exit_action::ExitAction;
use crate::runtime::cell::Task;
use crate::runtime::shared::Shared;
use ganger_proc_api::{Pid, RegisterNameError, RegisterNameErrorKind};
use std::sync::Arc;

/// Frees the names of a process.
struct FreeNames(Arc<Names>);

impl ExitAction for FreeNames {
    fn release(&mut self, process: Pid) {
        self.0.free_all(process);
    }
}

impl Shared {
    /// Gives the process a name, unless the remote knows another process by this name.
    pub(crate) fn register_name(&self, name: &str, task: &Task) -> Result<(), RegisterNameError> {
        let pid = task.pid();
        let above = self.remote.get().and_then(|it| it.whereis(name));
        let above = above.filter(|it| self.canonical(*it) != pid);
        if let Some(holder) = above.filter(|_| self.names.holder(name) != Some(pid)) {
            let kind = RegisterNameErrorKind::Taken { holder };
            return Err(refused(name, pid, kind));
        }
        let names = &self.names;
        let free = || Box::new(FreeNames(Arc::clone(names)));
        // Without the lock: the push may run other processes on this thread, and end them.
        let given = if names.knows(pid) || task.add_exit_action_in_time(free()).is_ok() {
            names.give(name, pid, || task.state.is_closed())
        } else {
            Err(RegisterNameErrorKind::NotFound)
        };
        given.map_err(|kind| refused(name, pid, kind))
    }

    /// Returns the process with this name, of this scheduler or of another that the remote knows.
    pub(crate) fn whereis(&self, name: &str) -> Option<Pid> {
        let found = self.names.holder(name);
        found.or_else(|| self.remote.get()?.whereis(name))
    }

    /// Gives the process with this PID a name.
    pub(crate) fn register_name_of(&self, name: &str, pid: Pid) -> Result<(), RegisterNameError> {
        match self.find(pid) {
            Some(task) => self.register_name(name, &task),
            None => Err(refused(name, pid, RegisterNameErrorKind::NotFound)),
        }
    }
}

fn refused(name: &str, pid: Pid, kind: RegisterNameErrorKind) -> RegisterNameError {
    let name = name.into();
    RegisterNameError { name, pid, kind }
}
