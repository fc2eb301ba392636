//! The registry: the map from PIDs to processes.
//!
//! Ids chosen by the scheduler are in a table of slots; ids chosen by users, below all of these, in
//! a map. No guard of either outlives a method here, so none is held across a send or a user's
//! call.

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_nodes::slots::{FIRST_ID, Slots};
use std::ops::Range;

/// Ids below this are the user's to choose; the scheduler chooses higher ids.
pub(crate) const FIRST_COUNTED_ID: u64 = FIRST_ID;

/// Parts of the map of chosen ids, each with a lock of its own.
const SHARDS: usize = 32;

pub(crate) struct Registry<T> {
    counted: Slots<T>,
    chosen: DashMap<u64, Chosen<T>>,
}

enum Chosen<T> {
    /// The id is taken, and its process is about to be visible.
    Reserved,
    Process(T),
}

impl<T: Clone> Registry<T> {
    /// Makes a registry. Ids of the scheduler begin at `generation` of their slots, at least 1.
    pub(crate) fn beginning_at(generation: u32) -> Self {
        Self {
            counted: Slots::beginning_at(generation),
            chosen: DashMap::with_shard_amount(SHARDS),
        }
    }

    /// Claims up to `count` ids, in never used slots.
    pub(crate) fn claim_fresh(&self, count: u32) -> Range<u64> {
        self.counted.claim_fresh(count)
    }

    /// Keeps others from taking an id chosen by a user; `false` for a taken id.
    #[must_use]
    pub(crate) fn reserve(&self, id: u64) -> bool {
        match self.chosen.entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(Chosen::Reserved);
                true
            }
        }
    }

    /// Makes the process visible.
    ///
    /// # Safety
    /// Its id is its own: it has been reserved, or claimed, and nothing has been put there since.
    pub(crate) unsafe fn insert(&self, id: u64, task: T) {
        if id < FIRST_COUNTED_ID {
            self.chosen.insert(id, Chosen::Process(task));
        } else {
            // SAFETY: the contract of this function.
            unsafe { self.counted.fill(id, task) };
        }
    }

    /// Frees the id. Returns its process, if the process was visible; and a newly claimed id in the
    /// same slot, if the slot has another.
    ///
    /// # Safety
    /// The caller calls it once for each reserved or claimed id.
    pub(crate) unsafe fn remove(&self, id: u64) -> (Option<T>, Option<u64>) {
        if id < FIRST_COUNTED_ID {
            let task = match self.chosen.remove(&id) {
                Some((_, Chosen::Process(task))) => Some(task),
                _ => None,
            };
            return (task, None);
        }
        // SAFETY: the contract of this function.
        unsafe { self.counted.free(id) }
    }

    /// Releases the memory of free chosen ids. O(n) in the taken ids.
    pub(crate) fn release(&self) {
        self.chosen.shrink_to_fit();
    }

    pub(crate) fn get(&self, id: u64) -> Option<T> {
        self.read(id, T::clone)
    }

    /// Calls `f` with a process, if it is visible. `f` must be short, must not panic, and calls no
    /// user's code: the thread that ends the process waits until `f` has returned.
    #[inline]
    pub(crate) fn read<R>(&self, id: u64, f: impl FnOnce(&T) -> R) -> Option<R> {
        if id < FIRST_COUNTED_ID {
            return match &*self.chosen.get(&id)? {
                Chosen::Process(task) => Some(f(task)),
                Chosen::Reserved => None,
            };
        }
        self.counted.read(id, f)
    }

    /// Iterates over all visible processes, chosen ids first and in their order. Processes that
    /// start or end meanwhile may be missing. O(n log n) in the chosen ones.
    pub(crate) fn all(&self) -> impl Iterator<Item = T> {
        self.portion(0, u32::MAX).0
    }

    /// Returns the visible processes of a portion of `slots` slots, and the begin of the next
    /// portion, if any. The first portion has all chosen ids. Otherwise as [`all`](Self::all).
    pub(crate) fn portion(&self, from: u32, slots: u32) -> (impl Iterator<Item = T>, Option<u32>) {
        let chosen = if from == 0 { self.chosen() } else { Vec::new() };
        let (ids, next) = self.counted.ids_among(from..from.saturating_add(slots));
        let counted = ids.filter_map(|id| self.counted.get(id));
        let chosen = chosen.into_iter().map(|(_, task)| task);
        (chosen.chain(counted), next)
    }

    /// Returns the visible processes with chosen ids, in the order of these.
    fn chosen(&self) -> Vec<(u64, T)> {
        let chosen = self.chosen.iter().filter_map(|entry| match entry.value() {
            Chosen::Process(task) => Some((*entry.key(), task.clone())),
            Chosen::Reserved => None,
        });
        // Collected, so that no guard is held while the caller looks at a process.
        let mut chosen: Vec<_> = chosen.collect();
        // The order of the map differs from run to run, and a simulation repeats from its seed.
        chosen.sort_unstable_by_key(|&(id, _)| id);
        chosen
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;
    use crate::noop_process::NoopProcess;
    use ganger_proc_api::Pid;
    use std::hash::BuildHasher;

    #[test]
    fn each_table_of_chosen_ids_has_a_key_of_its_own() {
        let hashes = || {
            let registry = Registry::<()>::beginning_at(1);
            [1, 2, 3].map(|id: u64| registry.chosen.hasher().hash_one(id))
        };
        assert_ne!(hashes(), hashes());
    }

    #[test]
    fn chosen_ids_are_listed_in_their_order() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let ids = [900, 7, 64, 1, 33, 500, 2, 4_000_000_000];
        for id in ids {
            let pid = Pid::new(scheduler.host_name(), id);
            drop(scheduler.submit_as(pid, NoopProcess, "main", ()).unwrap());
        }
        let counted = scheduler
            .submit(NoopProcess, "main", ())
            .unwrap()
            .pid()
            .id();
        let mut expected = ids.to_vec();
        expected.sort_unstable();
        expected.push(counted);
        let listed = scheduler.shared.census.registry.all();
        assert_eq!(
            listed.map(|task| task.pid().id()).collect::<Vec<_>>(),
            expected
        );
    }
}
