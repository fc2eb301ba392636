//! The entries that a peer has told, for as long as its session lasts.
//!
//! A process of the peer leaves everything when its end is told, by whichever notice comes first,
//! so no monitor here hears of an end before the process has left.

use super::base::Base;
use super::directory::{Directory, MAX_ENTRIES};
use super::listing::Listing;
use crate::wire::ReadError;
use ganger_link::Groups;
use ganger_link::carrier::{self, MAX_JOINS};
use ganger_proc_api::{NodeName, Pid};
use ganger_sched::Handle;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Listed {
    processes: HashMap<Pid, Entries>,
    /// The scopes with entries of the peer, and how many each has.
    scopes: HashMap<Arc<str>, (Groups, usize)>,
    holders: HashMap<Arc<str>, Pid>,
    /// The joins and names of all processes.
    entries: usize,
}

#[derive(Default)]
struct Entries {
    /// How often the process is in a group, by scope and group.
    joins: BTreeMap<(Arc<str>, Arc<str>), usize>,
    names: BTreeSet<Arc<str>>,
}

impl Listed {
    /// Returns the processes with entries, in an order that repeats in simulations.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let mut processes: Vec<_> = self.processes.keys().copied().collect();
        processes.sort_unstable();
        processes
    }

    /// Takes an entry told by the peer.
    pub(crate) fn take(
        &mut self,
        base: &Base,
        scheduler: &Handle,
        peer: NodeName,
        listing: Listing,
    ) -> Result<(), ReadError> {
        match listing {
            Listing::Joined {
                scope,
                group,
                pid,
                joins,
            } => {
                let joins = usize::try_from(joins).unwrap_or(usize::MAX);
                if joins > MAX_JOINS {
                    return Err(ReadError::Short);
                }
                self.join(base, scheduler, &(scope, group), pid, joins);
            }
            Listing::Named { name, holder } => {
                self.unname(base, &name);
                if let Some((pid, since)) = holder {
                    self.entries += 1;
                    let process = self.processes.entry(pid).or_default();
                    process.names.insert(Arc::clone(&name));
                    self.holders.insert(Arc::clone(&name), pid);
                    base.directory.named(&name, peer, pid, since);
                }
            }
        }
        // A peer has half of this: changes of an entry may come in an order that has more for a
        // moment.
        let is_bounded = self.entries <= 2 * MAX_ENTRIES;
        is_bounded.then_some(()).ok_or(ReadError::Short)
    }

    fn join(
        &mut self,
        base: &Base,
        scheduler: &Handle,
        place: &(Arc<str>, Arc<str>),
        pid: Pid,
        joins: usize,
    ) {
        let (scope, group) = place;
        let process = self.processes.entry(pid).or_default();
        let before = process.joins.get(place).copied().unwrap_or(0);
        match joins {
            0 => process.joins.remove(place),
            _ => process.joins.insert(place.clone(), joins),
        };
        if process.joins.is_empty() && process.names.is_empty() {
            self.processes.remove(&pid);
        }
        self.entries = self.entries + joins - before;
        if joins == before {
            return;
        }
        let (groups, used) = self.scopes.entry(Arc::clone(scope)).or_insert_with(|| {
            let groups = Directory::groups(&base.directory, scope);
            (groups, 0)
        });
        if let Some(process) = scheduler.address(pid) {
            carrier::arrived(groups, group, &process, joins);
        }
        *used = *used + joins - before;
        if *used == 0 {
            self.scopes.remove(scope);
        }
    }

    fn unname(&mut self, base: &Base, name: &Arc<str>) {
        let Some(pid) = self.holders.remove(name) else {
            return;
        };
        self.entries -= 1;
        if let Some(process) = self.processes.get_mut(&pid) {
            process.names.remove(name);
            if process.joins.is_empty() && process.names.is_empty() {
                self.processes.remove(&pid);
            }
        }
        base.directory.unnamed(name, pid);
    }

    /// Forgets a process that has ended, or whose node is lost.
    pub(crate) fn forget(&mut self, base: &Base, scheduler: &Handle, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        let names: Vec<_> = process.names.iter().cloned().collect();
        let places: Vec<_> = process.joins.keys().cloned().collect();
        for name in names {
            self.unname(base, &name);
        }
        for place in places {
            self.join(base, scheduler, &place, pid, 0);
        }
    }
}
