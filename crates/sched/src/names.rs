//! Names of processes: a name is one process's, as long as that has not ended.
//!
//! **Problem.** A name is to be free when its process has ended, in whatever way, before anybody is told of that; and a
//! process without a name is not to pay for those that have one.
//!
//! **Rejected.** To look at each end through the table of names. To have names lapse when they are next asked for, with
//! a reference to the process that has ended: the table would keep the cells, and these the scheduler.
//!
//! **Protocol.** The table says whose each name is.
//! 1. Who gives a name puts it into the table, if it is not there, and then tells the process by way of its mailbox, as
//!    one does who monitors it (`watchers.rs`). When the mailbox is closed already, the name goes out of the table again.
//! 2. The process keeps a list of its names. Its end, which has closed the mailbox, takes those out of the table that are
//!    still its own, before its PID is gone: so nobody else has that PID.
//! 3. Who takes a name away takes it out of the table, and tells the process.
//!
//! A name that is taken away before its process has been told of it stays in the list, which does no harm: at the end
//! the table says that it is nobody's, or another's.

use crate::Task;
use crate::shared::Shared;
use crate::watchers::Watch;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_proc_api::{Pid, RegisterNameError, RegisterNameErrorKind};

/// Whose each name is.
#[derive(Default)]
pub(crate) struct Names(DashMap<Box<str>, Pid>);

impl Names {
    /// Makes the name that process's, if it is nobody's.
    fn take(&self, name: &str, pid: Pid) -> Result<(), RegisterNameErrorKind> {
        match self.0.entry(name.into()) {
            Entry::Occupied(taken) => {
                let holder = *taken.get();
                Err(RegisterNameErrorKind::Taken { holder })
            }
            Entry::Vacant(free) => {
                free.insert(pid);
                Ok(())
            }
        }
    }

    /// The name is nobody's, if it was that process's.
    pub(crate) fn free(&self, name: &str, pid: Pid) {
        self.0.remove_if(name, |_, holder| *holder == pid);
    }
}

impl Shared {
    /// Gives the process a name.
    pub(crate) fn register_name(&self, name: &str, task: &Task) -> Result<(), RegisterNameError> {
        let pid = task.pid;
        let given = self.names.take(name, pid).and_then(|()| {
            task.push_watch(Watch::Name(name.into())).map_err(|_ended| {
                self.names.free(name, pid);
                RegisterNameErrorKind::NotFound
            })
        });
        given.map_err(|kind| {
            let name = name.into();
            RegisterNameError { name, pid, kind }
        })
    }

    /// Gives the process with that PID a name.
    pub(crate) fn register_name_of(&self, name: &str, pid: Pid) -> Result<(), RegisterNameError> {
        match self.find(pid) {
            Some(task) => self.register_name(name, &task),
            None => Err(RegisterNameError {
                name: name.into(),
                pid,
                kind: RegisterNameErrorKind::NotFound,
            }),
        }
    }

    /// Takes a name away. Returns whose it was.
    pub(crate) fn unregister_name(&self, name: &str) -> Option<Pid> {
        let (name, pid) = self.names.0.remove(name)?;
        if let Some(task) = self.find(pid) {
            // One that has ended has no names any more.
            let _ = task.push_watch(Watch::Unname(name));
        }
        Some(pid)
    }

    /// The process that has that name, if it can be found.
    pub(crate) fn whereis(&self, name: &str) -> Option<Pid> {
        let pid = *self.names.0.get(name)?;
        // One whose `init` has not returned may have a name already.
        self.registry.read(pid.id(), |_| pid)
    }

    /// All names, in the order of their texts, and whose they are.
    pub(crate) fn names(&self) -> Vec<(Box<str>, Pid)> {
        let names = self.names.0.iter();
        let mut names: Vec<_> = names.map(|it| (it.key().clone(), *it.value())).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_freed_by_whom_it_belongs_to() {
        let [one, other] = ["{main|1}", "{main|2}"].map(|it| it.parse().unwrap());
        let names = Names::default();
        names.take("a", one).unwrap();
        names.free("a", other);
        let taken = RegisterNameErrorKind::Taken { holder: one };
        assert_eq!(names.take("a", other), Err(taken));
        names.free("a", one);
        names.take("a", other).unwrap();
    }
}
