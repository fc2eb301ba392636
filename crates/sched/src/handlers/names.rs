//! The tables of names of processes.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_proc_api::{Pid, RegisterNameErrorKind};
use ganger_sync::shrink_after_burst;
use ganger_sync::sync::{Mutex, lock};
use std::collections::{HashMap, HashSet};

/// A process that has had more names at once, and has lost most of them, keeps no room for them.
const KEPT: usize = 32;

/// The process of each name, and the names of each process. The way to a name, and its loss, are in
/// `exits/naming.rs`.
#[derive(Default)]
pub(crate) struct Names {
    /// The process of each name. Changed under the lock of `of`, and read without.
    holders: DashMap<Box<str>, Pid>,
    /// The names of each process with an exit action for them.
    of: Mutex<HashMap<Pid, HashSet<Box<str>>>>,
}

impl Names {
    /// Returns whether the process has an exit action for its names.
    pub(crate) fn knows(&self, pid: Pid) -> bool {
        lock(&self.of).contains_key(&pid)
    }

    /// Gives a name to a process with an exit action for its names, unless it has ended.
    pub(crate) fn give(
        &self,
        name: &str,
        pid: Pid,
        has_ended: impl FnOnce() -> bool,
    ) -> Result<(), RegisterNameErrorKind> {
        let mut of = lock(&self.of);
        if has_ended() {
            return Err(RegisterNameErrorKind::NotFound);
        }
        // Also if it gets none now: it needs no further exit action.
        let names = of.entry(pid).or_default();
        match self.holders.entry(name.into()) {
            Entry::Occupied(taken) => {
                let holder = *taken.get();
                if holder == pid {
                    return Ok(());
                }
                Err(RegisterNameErrorKind::Taken { holder })
            }
            Entry::Vacant(free) => {
                free.insert(pid);
                names.insert(name.into());
                Ok(())
            }
        }
    }

    /// Takes a name away. Returns whose it was.
    pub(crate) fn take(&self, name: &str) -> Option<Pid> {
        let mut of = lock(&self.of);
        let (name, pid) = self.holders.remove(name)?;
        // The process still has its exit action.
        if let Some(names) = of.get_mut(&pid) {
            names.remove(&name);
            shrink_after_burst(names, KEPT);
        }
        Some(pid)
    }

    /// Frees the names of a process that is ending. O(n) in these.
    pub(crate) fn free_all(&self, pid: Pid) {
        let mut of = lock(&self.of);
        for name in of.remove(&pid).into_iter().flatten() {
            self.holders.remove(&name);
        }
    }

    /// Returns the process with this name. The process may be ending.
    pub(crate) fn holder(&self, name: &str) -> Option<Pid> {
        self.holders.get(name).map(|holder| *holder)
    }

    /// Returns the names of the process, in the order of their texts.
    pub(crate) fn of(&self, pid: Pid) -> Vec<Box<str>> {
        let of = lock(&self.of);
        let mut names: Vec<_> = of.get(&pid).into_iter().flatten().cloned().collect();
        names.sort_unstable();
        names
    }

    /// Returns whether `holds` accepts a name of the process. Called under the lock, so `holds`
    /// must not call back.
    #[cfg(feature = "observe")]
    pub(crate) fn any_of(&self, pid: Pid, mut holds: impl FnMut(&str) -> bool) -> bool {
        let of = lock(&self.of);
        of.get(&pid).into_iter().flatten().any(|name| holds(name))
    }

    /// Returns all names, in the order of their texts, and whose they are.
    pub(crate) fn all(&self) -> Vec<(Box<str>, Pid)> {
        let names = self.holders.iter();
        let mut names: Vec<_> = names.map(|it| (it.key().clone(), *it.value())).collect();
        names.sort_unstable();
        names
    }

    /// Releases the memory of former names. O(n) in the present names.
    pub(crate) fn release(&self) {
        let mut of = lock(&self.of);
        of.shrink_to_fit();
        self.holders.shrink_to_fit();
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;
    use std::hash::BuildHasher;

    // pins: P12
    #[test]
    fn a_process_that_has_ended_gets_no_name() {
        let names = Names::default();
        let pid = Pid::new(HostName::new("test").unwrap(), 1);
        let refused = names.give("name", pid, || true).unwrap_err();
        assert_eq!(refused, RegisterNameErrorKind::NotFound);
        assert!(!names.knows(pid) && names.holder("name").is_none());
    }

    #[test]
    fn each_table_of_names_has_keys_of_its_own() {
        let host = HostName::new("test").unwrap();
        let hashes = || {
            let names = Names::default();
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
