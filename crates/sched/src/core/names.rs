//! Names of processes: a name belongs to one process, as long as that process has not ended.
//!
//! **Problem.** A name must be free when its process has ended, in whatever way, before a monitor
//! is told of that. A process without a name must not pay for those that have one.
//!
//! **Rejected.**
//! - To look through the table of names at each end.
//! - To have a name lapse when it is next looked up, by a reference to the ended process. The table
//!   then keeps the cells, and the cells keep the scheduler.
//! - To have the process keep the list of its names, which requesters change through its mailbox.
//!   A loss of a name may then arrive before the gain of it.
//!
//! **Protocol.** One table maps each name to its process. Another one maps each process to its
//! names. Both change under one lock.
//! 1. The requester that gives a process its first name tells the process through its mailbox, as a
//!    monitor does (`watchers.rs`). So the end knows that the process may have names.
//! 2. Then, under the lock, the requester gives the name, unless the process has closed its
//!    mailbox.
//! 3. The end of a process that may have names takes them away, under the lock. It does so after
//!    the close of the mailbox, and before the PID is gone.
//!
//! **Proof sketch.** A requester that has told the process takes the lock before the end does, or
//! after it. Before the end, the end still finds the name. After the end, the requester finds the
//! mailbox closed. A requester that can't tell the process, because its mailbox is closed, gives no
//! name.

use crate::base::burst::shrink_after_burst;
use crate::core::cell::Task;
use crate::core::shared::Shared;
use crate::core::watchers::Watch;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_proc_api::{Pid, RegisterNameError, RegisterNameErrorKind};
use ganger_sync::sync::{Mutex, lock};
use std::collections::{HashMap, HashSet};

/// A process that has had more names at once, and has lost most of them, keeps no room for them.
const KEPT: usize = 32;

/// See the head of this file.
pub(crate) struct Names {
    /// The process of each name. Changed under the lock of `of`, and read without.
    holders: DashMap<Box<str>, Pid>,
    /// The names of each process that knows that it may have some.
    of: Mutex<HashMap<Pid, HashSet<Box<str>>>>,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            holders: DashMap::new(),
            of: Mutex::new(HashMap::new()),
        }
    }

    /// Whether a requester has told the process that it may have names.
    fn knows(&self, pid: Pid) -> bool {
        lock(&self.of).contains_key(&pid)
    }

    /// Gives a name to a process that knows that it may have some, unless it has ended.
    fn give(&self, name: &str, task: &Task) -> Result<(), RegisterNameErrorKind> {
        let mut of = lock(&self.of);
        if task.state.is_closed() {
            return Err(RegisterNameErrorKind::NotFound);
        }
        // Also if it gets none now: it need not be told again.
        let names = of.entry(task.pid).or_default();
        match self.holders.entry(name.into()) {
            Entry::Occupied(taken) => {
                let holder = *taken.get();
                Err(RegisterNameErrorKind::Taken { holder })
            }
            Entry::Vacant(free) => {
                free.insert(task.pid);
                names.insert(name.into());
                Ok(())
            }
        }
    }

    /// Takes a name away.
    fn take(&self, name: &str) -> Option<Pid> {
        let mut of = lock(&self.of);
        let (name, pid) = self.holders.remove(name)?;
        // The process still knows that it may have names.
        if let Some(names) = of.get_mut(&pid) {
            names.remove(&name);
            shrink_after_burst(names, KEPT);
        }
        Some(pid)
    }

    /// The process with that PID is ending: its names are free. O(n) in these.
    pub(crate) fn free_all(&self, pid: Pid) {
        let mut of = lock(&self.of);
        for name in of.remove(&pid).into_iter().flatten() {
            self.holders.remove(&name);
        }
    }

    /// The names of that process, in the order of their texts.
    #[cfg(feature = "sim")]
    pub(crate) fn of(&self, pid: Pid) -> Vec<Box<str>> {
        let of = lock(&self.of);
        let mut names: Vec<_> = of.get(&pid).into_iter().flatten().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Gives the memory of names back that are no more. O(n) in the names that there are.
    pub(crate) fn release(&self) {
        let mut of = lock(&self.of);
        of.shrink_to_fit();
        self.holders.shrink_to_fit();
    }
}

impl Shared {
    /// Gives the process a name.
    pub(crate) fn register_name(&self, name: &str, task: &Task) -> Result<(), RegisterNameError> {
        let pid = task.pid;
        // Without the lock: what is told may have others run, and end.
        let is_told = self.names.knows(pid) || task.push_watch(Watch::Named).is_ok();
        let given = if is_told {
            self.names.give(name, task)
        } else {
            Err(RegisterNameErrorKind::NotFound)
        };
        given.map_err(|kind| refused(name, pid, kind))
    }

    /// Gives the process with that PID a name.
    pub(crate) fn register_name_of(&self, name: &str, pid: Pid) -> Result<(), RegisterNameError> {
        match self.find(pid) {
            Some(task) => self.register_name(name, &task),
            None => Err(refused(name, pid, RegisterNameErrorKind::NotFound)),
        }
    }

    /// Takes a name away. Returns whose it was.
    pub(crate) fn unregister_name(&self, name: &str) -> Option<Pid> {
        self.names.take(name)
    }

    /// The process that has that name, if it can be found.
    pub(crate) fn whereis(&self, name: &str) -> Option<Pid> {
        let pid = *self.names.holders.get(name)?;
        // One that is ending may have its names still.
        self.registry.read(pid.id(), |_| pid)
    }

    /// All names, in the order of their texts, and whose they are.
    pub(crate) fn names(&self) -> Vec<(Box<str>, Pid)> {
        let names = self.names.holders.iter();
        let mut names: Vec<_> = names.map(|it| (it.key().clone(), *it.value())).collect();
        names.sort_unstable();
        names
    }
}

fn refused(name: &str, pid: Pid, kind: RegisterNameErrorKind) -> RegisterNameError {
    let name = name.into();
    RegisterNameError { name, pid, kind }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;
    use std::hash::BuildHasher;

    #[test]
    fn each_table_of_names_has_keys_of_its_own() {
        let host = HostName::new("test").unwrap();
        let hashes = || {
            let names = Names::new();
            let mut of = lock(&names.of);
            let of_one = of.entry(Pid::new(host, 1)).or_default();
            [
                of_one.hasher().hash_one("name"),
                names.holders.hasher().hash_one("name"),
                of.hasher().hash_one("name"),
            ]
        };
        let (one, other) = (hashes(), hashes());
        assert!(
            one.iter().zip(&other).all(|(a, b)| a != b),
            "{one:?} {other:?}"
        );
    }
}
