//! Processes that a worker's processes send to by PID again and again, so that they need not be looked up.
//!
//! **Problem.** Who looks a process up counts itself in and out of its slot ([`slots`](crate::slots)): two
//! read-modify-writes, of a word that all share who send to the process.
//!
//! **Rejected.** To announce the look-up by a store of the worker's own, as hazard pointers do: then who ends a
//! process makes a heavy fence, or keeps the cell for later. Every end would pay for that, and most processes are
//! never sent to by PID.
//!
//! **Protocol.** An id says its place in the cache. A process comes to a place when it has been looked up twice and
//! the one that is there was not asked for in between: so two that share a place do not drive each other out at
//! every send.
//!
//! **Why it says what the registry says.** A process closes its mailbox before its id is given back, and never
//! opens it again. Who is refused, by one that is here, as closed, has it forgotten and looks the id up after all.
//! What takes a message has the id.
//!
//! **Memory.** A process that has ended leaves nothing of a user's in its cell. The cell stays until its place is
//! another's, or the worker sleeps or stands down: [`PLACES`] cells a worker at the most.

use crate::Task;
use std::mem;

/// Places of a worker: a power of two.
pub(crate) const PLACES: usize = 64;

/// One worker's.
pub(crate) struct PidCache {
    /// Apart, so that what a worker uses in every turn lies together.
    places: Box<[Place; PLACES]>,
    /// Places that are taken.
    taken: usize,
}

struct Place {
    /// Of `task`.
    id: u64,
    task: Option<Task>,
    /// What has been looked up in vain since `task` was asked for.
    missed: u64,
}

/// No process has this id: there are fewer slots.
const NOBODY: u64 = u64::MAX;

impl Default for Place {
    fn default() -> Self {
        Self {
            id: NOBODY,
            task: None,
            missed: NOBODY,
        }
    }
}

impl PidCache {
    pub(crate) fn new() -> Self {
        Self {
            places: Box::new(std::array::from_fn(|_| Place::default())),
            taken: 0,
        }
    }

    fn place(&mut self, id: u64) -> &mut Place {
        #[expect(clippy::cast_possible_truncation, reason = "it is a part of the id")]
        let index = id as usize % PLACES;
        &mut self.places[index]
    }

    /// The process with that id, if it is here. O(1).
    #[inline]
    pub(crate) fn get(&mut self, id: u64) -> Option<&Task> {
        let place = self.place(id);
        if place.id != id {
            return None;
        }
        place.missed = NOBODY;
        place.task.as_ref()
    }

    /// Whether the process, which is not here and is being looked up, should be [`insert`](Self::insert)ed. O(1).
    #[inline]
    pub(crate) fn miss(&mut self, id: u64) -> bool {
        let place = self.place(id);
        mem::replace(&mut place.missed, id) == id
    }

    /// Puts a process into the place of its id. Returns who was there.
    pub(crate) fn insert(&mut self, task: Task) -> Option<Task> {
        let id = task.pid.id();
        let place = self.place(id);
        (place.id, place.missed) = (id, NOBODY);
        let before = place.task.replace(task);
        self.taken += usize::from(before.is_none());
        before
    }

    /// The process with that id, which is here, and is here no longer. O(1).
    pub(crate) fn forget(&mut self, id: u64) -> Option<Task> {
        let place = self.place(id);
        debug_assert_eq!(place.id, id, "another one is there");
        let forgotten = mem::take(place).task;
        self.taken -= usize::from(forgotten.is_some());
        forgotten
    }

    /// All of them, which are here no longer. O(1) when there are none.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Task> {
        let places = if mem::take(&mut self.taken) > 0 {
            PLACES
        } else {
            0
        };
        let places = self.places[..places].iter_mut();
        places.filter_map(|place| mem::take(place).task)
    }
}
