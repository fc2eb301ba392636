//! Inner parts for the benchmarks of this workspace. They are no part of the interface: they may
//! change or go in any version.

use crate::api::handle::Handle;
use crate::noop_process::NoopProcess;
use crate::process::origin::Origin;
use crate::process::process_box::ProcessBox;
use crate::process::state::{Begin, Leave, State, Waiting, Wake};
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::registry::Registry;
use ganger_proc_api::Pid;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// The state of a process that is queued, between calls.
pub struct StateWord(State<u64>);

impl Default for StateWord {
    fn default() -> Self {
        Self(State::new())
    }
}

impl StateWord {
    /// Makes a turn after which it waits, and the event that queues it again; returns whether all
    /// was as expected.
    pub fn park_and_wake(&self) -> bool {
        self.0.begin() == Begin::Step
            && self.0.drain().len() <= 1
            && self.0.park(Waiting::Idle) == Leave::Parked
            && self.0.push(7) == Ok(Wake::Enqueue)
    }

    /// Makes a turn after which it is queued again.
    pub fn requeue(&self) -> bool {
        self.0.begin() == Begin::Step && self.0.requeue() == Leave::Requeue
    }

    /// Makes a turn in which an event arrives, so it can't park, and the next turn, which takes the
    /// event.
    pub fn wake_while_running(&self) -> bool {
        self.0.begin() == Begin::Step
            && self.0.push(7) == Ok(Wake::Noted)
            && self.0.park(Waiting::Idle) == Leave::Requeue
            && self.0.begin() == Begin::Step
            && self.0.drain().len() <= 2
            && self.0.requeue() == Leave::Requeue
    }

    /// Pushes an event while it is queued, and makes the turn that takes the event.
    pub fn wake_while_ready(&self) -> bool {
        self.0.push(7) == Ok(Wake::Noted)
            && self.0.begin() == Begin::Step
            && self.0.drain().len() <= 2
            && self.0.requeue() == Leave::Requeue
    }
}

impl fmt::Debug for StateWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.snapshot().state();
        f.debug_tuple("StateWord").field(&state).finish()
    }
}

/// A registry of processes, which belong to a scheduler that does not know of them.
pub struct Processes {
    registry: Registry<Task>,
    scheduler: Handle,
    ids: Vec<Cell<u64>>,
}

impl Processes {
    /// Makes the processes, and registers them.
    #[must_use]
    pub fn new(scheduler: &Handle, processes: u32) -> Self {
        let scheduler = scheduler.clone();
        let registry = Registry::beginning_at(1);
        let mut this = Self {
            registry,
            scheduler,
            ids: Vec::new(),
        };
        let ids = this.registry.claim_fresh(processes);
        this.ids = ids.map(|id| Cell::new(this.insert(id))).collect();
        this
    }

    fn insert(&self, id: u64) -> u64 {
        let shared = Arc::clone(&self.scheduler.shared);
        let pid = Pid::new(shared.host, id);
        let cell = ProcessCell::new(
            shared,
            pid,
            "main".into(),
            ProcessBox::boxed(Box::new(NoopProcess)),
            Origin::new(0, None, None, false),
        );
        // SAFETY: the id has been claimed, and no other thread uses it.
        unsafe { self.registry.insert(id, cell) };
        id
    }

    /// The id of a process, by its place among them.
    #[must_use]
    pub fn id(&self, nth: u32) -> Option<u64> {
        self.ids.get(nth as usize).map(Cell::get)
    }

    /// Looks an id up, and takes a reference to its process; returns whether it was there.
    #[must_use]
    pub fn has(&self, id: u64) -> bool {
        self.registry.get(id).is_some()
    }

    /// Takes a process out, by its place among them, and puts another in; returns whether it was
    /// there.
    pub fn replace(&self, nth: u32) -> bool {
        let Some(id) = self.ids.get(nth as usize) else {
            return false;
        };
        // SAFETY: the id belongs to the place, until it is replaced here.
        match unsafe { self.registry.remove(id.get()) } {
            (task, Some(next)) => {
                id.set(self.insert(next));
                task.is_some()
            }
            (_, None) => false,
        }
    }

    /// Takes an id of a user's choice and gives it back; whether it was free.
    pub fn reserve(&self, id: u64) -> bool {
        let is_free = self.registry.reserve(id);
        if is_free {
            // SAFETY: it has just been reserved.
            let _nothing = unsafe { self.registry.remove(id) };
        }
        is_free
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.ids.len();
        f.debug_tuple("Processes").field(&count).finish()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;
    use crate::Scheduler;

    #[test]
    fn the_word_is_ready_again_after_each_call() {
        let word = StateWord::default();
        for _ in 0..2 {
            assert!(word.park_and_wake());
            assert!(word.requeue());
            assert!(word.wake_while_running());
            assert!(word.wake_while_ready());
        }
        assert_eq!(format!("{word:?}"), "StateWord(Ready)");
    }

    #[test]
    fn processes_are_found_by_their_ids_alone() {
        let scheduler = Scheduler::builder().workers(1).build().unwrap();
        let processes = Processes::new(&scheduler, 3);
        let ids: Vec<u64> = (0..3).map(|nth| processes.id(nth).unwrap()).collect();
        let has = |id: &u64| processes.has(*id);
        assert!(ids.iter().all(has) && !processes.has(ids[2] + 1));
        assert_eq!(
            [0, 2, 3].map(|nth| processes.replace(nth)),
            [true, true, false]
        );
        assert_eq!([0, 1, 2].map(|nth| has(&ids[nth])), [false, true, false]);
        assert!([0, 2].map(|nth| processes.id(nth).unwrap()).iter().all(has));
        assert!(processes.reserve(7) && processes.reserve(7));
        assert!(!processes.has(7));
        assert_eq!(scheduler.stats().live, 0);
    }
}
