//! Which process a PID names.
//!
//! No guard of the map outlives a method here, so that none is held across a send or a user's call.

use crate::Task;
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_proc_api::Symbol;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Ids below this are the user's to choose; the scheduler counts up from here. So a process that is
/// being initialised under a counted id can't be overtaken by one that was given the same id.
pub(crate) const FIRST_COUNTED_ID: u64 = 1 << 32;

pub(crate) struct Registry(DashMap<u64, Slot, FxBuildHasher>);

enum Slot {
    /// The id is taken, and its process is being initialised.
    Reserved,
    Process(Task),
}

impl Registry {
    /// With so many shards that copying one, which keeps others from changing it, takes little.
    pub(crate) fn new(workers: usize) -> Self {
        let shards = (64 * workers).next_power_of_two().min(4096);
        Self(DashMap::with_hasher_and_shard_amount(FxBuildHasher, shards))
    }

    /// Keeps others from taking `id`; `false` when it is taken.
    #[must_use]
    pub(crate) fn reserve(&self, id: u64) -> bool {
        match self.0.entry(id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(Slot::Reserved);
                true
            }
        }
    }

    /// Makes the process visible under an id that is its own: reserved, or counted.
    pub(crate) fn insert(&self, task: &Task) {
        self.0
            .insert(task.pid.id(), Slot::Process(Arc::clone(task)));
    }

    /// How many ids are taken. O(shards).
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Frees the id, and gives the process back whose id it was.
    pub(crate) fn remove(&self, id: u64) -> Option<Task> {
        match self.0.remove(&id)? {
            (_, Slot::Process(task)) => Some(task),
            (_, Slot::Reserved) => None,
        }
    }

    pub(crate) fn get(&self, id: u64) -> Option<Task> {
        match &*self.0.get(&id)? {
            Slot::Process(task) => Some(Arc::clone(task)),
            Slot::Reserved => None,
        }
    }

    /// The method of a process, without a reference to it, which might be the last one.
    pub(crate) fn method(&self, id: u64) -> Option<Symbol> {
        match &*self.0.get(&id)? {
            Slot::Process(task) => Some(task.method),
            Slot::Reserved => None,
        }
    }

    /// All visible processes. Those that start or end meanwhile may or may not be among them. Locks
    /// one shard at a time, for as long as it takes to copy it.
    pub(crate) fn all(&self) -> Vec<Task> {
        let mut tasks = Vec::with_capacity(self.0.len());
        tasks.extend(self.0.iter().filter_map(|entry| match entry.value() {
            Slot::Process(task) => Some(Arc::clone(task)),
            Slot::Reserved => None,
        }));
        tasks
    }
}
