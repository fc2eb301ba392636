//! Which process a PID names.
//!
//! Ids that the scheduler chooses are in a table of slots; those that users choose, below all of these,
//! in a map. No guard of either outlives a method here, so that none is held across a send or a user's
//! call.

use crate::Task;
use crate::slots::{FIRST_ID, Slots, slot_of};
use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use ganger_proc_api::Symbol;
use rustc_hash::FxBuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// Ids below this are the user's to choose; the scheduler chooses higher ones. So a process that is
/// being initialised under such an id can't be overtaken by one that was given the same id.
pub(crate) const FIRST_COUNTED_ID: u64 = FIRST_ID;

/// Parts of the map of ids that users have chosen, each with a lock of its own.
const SHARDS: usize = 32;

pub(crate) struct Registry {
    counted: Slots<Task>,
    chosen: DashMap<u64, Chosen, FxBuildHasher>,
}

enum Chosen {
    /// The id is taken, and its process is being initialised.
    Reserved,
    Process(Task),
}

/// What is left of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freed {
    /// A slot, to be used again.
    Slot(u32),
    Nothing,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            counted: Slots::new(),
            // Not as many shards as the machine has cores ask for: their order is that of `all`.
            chosen: DashMap::with_hasher_and_shard_amount(FxBuildHasher, SHARDS),
        }
    }

    /// Claims up to `count` slots that nobody has used.
    pub(crate) fn claim_fresh(&self, count: u32) -> Range<u32> {
        self.counted.claim_fresh(count)
    }

    /// The id of the next process in a slot that the caller has claimed.
    pub(crate) fn next_id(&self, slot: u32) -> u64 {
        self.counted.next_id(slot)
    }

    /// Keeps others from taking an id that a user has chosen; `false` when it is taken.
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
    /// Its id is its own: it has been reserved, or is the next one of a slot that the caller has claimed.
    pub(crate) unsafe fn insert(&self, task: Task) {
        let id = task.pid.id();
        if id < FIRST_COUNTED_ID {
            self.chosen.insert(id, Chosen::Process(task));
        } else {
            // SAFETY: the caller has claimed the slot, and nothing has been put there since.
            unsafe { self.counted.fill(id, task) };
        }
    }

    /// Frees the id, and gives the process back whose id it was, if it was visible.
    ///
    /// # Safety
    /// It is called once for each id that was reserved or claimed.
    pub(crate) unsafe fn remove(&self, id: u64) -> (Option<Task>, Freed) {
        if id < FIRST_COUNTED_ID {
            let task = match self.chosen.remove(&id) {
                Some((_, Chosen::Process(task))) => Some(task),
                _ => None,
            };
            return (task, Freed::Nothing);
        }
        // SAFETY: as this function's.
        match unsafe { self.counted.free(id) } {
            (task, true) => (task, Freed::Slot(slot_of(id))),
            (task, false) => (task, Freed::Nothing),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<Task> {
        self.read(id, Arc::clone)
    }

    /// The method of a process, without a reference to it, which might be the last one.
    pub(crate) fn method(&self, id: u64) -> Option<Symbol> {
        self.read(id, |task| task.method)
    }

    /// Calls `f` with a process, if it is visible. `f` has to be short, must not panic, and calls nothing of
    /// a user's: whoever ends the process waits until it has returned.
    #[inline]
    pub(crate) fn read<R>(&self, id: u64, f: impl FnOnce(&Task) -> R) -> Option<R> {
        if id < FIRST_COUNTED_ID {
            return match &*self.chosen.get(&id)? {
                Chosen::Process(task) => Some(f(task)),
                Chosen::Reserved => None,
            };
        }
        self.counted.read(id, f)
    }

    /// All visible processes, one after the other. Those that start or end meanwhile may or may not be
    /// among them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Task> {
        let chosen = self.chosen.iter().filter_map(|entry| match entry.value() {
            Chosen::Process(task) => Some(Arc::clone(task)),
            Chosen::Reserved => None,
        });
        // Collected, so that no guard is held while somebody looks at a process.
        let chosen: Vec<_> = chosen.collect();
        let counted = self.counted.ids().filter_map(|id| self.counted.get(id));
        chosen.into_iter().chain(counted)
    }
}
