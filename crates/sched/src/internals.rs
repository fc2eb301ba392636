//! What the benchmarks of this workspace measure of the inside. It is no part of the interface: it may
//! change or go in any version.

use crate::Task;
use crate::cell::ProcessCell;
use crate::handle::Handle;
use crate::registry::{FIRST_COUNTED_ID, Registry};
use crate::state::{Begin, Leave, State, Waiting, Wake};
use ganger_proc_api::{BoxError, Events, Pid, Process, StepOutput};
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
    /// A turn after which it waits, and the event that queues it again; whether all was as expected.
    pub fn park_and_wake(&self) -> bool {
        self.0.begin() == Begin::Step
            && self.0.drain().len() <= 1
            && self.0.park(Waiting::Idle) == Leave::Parked
            && self.0.push(7) == Ok(Wake::Enqueue)
    }

    /// A turn after which it is queued again.
    pub fn requeue(&self) -> bool {
        self.0.begin() == Begin::Step && self.0.requeue() == Leave::Requeue
    }

    /// A turn in which an event arrives, so that it can't park, and the next, which takes it.
    pub fn wake_while_running(&self) -> bool {
        self.0.begin() == Begin::Step
            && self.0.push(7) == Ok(Wake::Noted)
            && self.0.park(Waiting::Idle) == Leave::Requeue
            && self.0.begin() == Begin::Step
            && self.0.drain().len() <= 2
            && self.0.requeue() == Leave::Requeue
    }

    /// An event while it is queued, and the turn that takes it.
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

/// A registry of so many processes, which belong to a scheduler that does not know of them.
pub struct Processes {
    registry: Registry,
    tasks: Vec<Task>,
}

impl Processes {
    /// Makes the processes, with ids that count from [`first`](Self::first), and registers them.
    #[must_use]
    pub fn new(scheduler: &Handle, workers: usize, processes: u64) -> Self {
        let registry = Registry::new(workers);
        let cell = |id| {
            let pid = Pid::new(scheduler.shared.host, Self::first() + id);
            let shared = Arc::clone(&scheduler.shared);
            Arc::new(ProcessCell::new(
                shared,
                pid,
                "main".into(),
                Box::new(Still),
            ))
        };
        let tasks: Vec<Task> = (0..processes).map(cell).collect();
        tasks.iter().for_each(|task| registry.insert(task));
        Self { registry, tasks }
    }

    /// The first id.
    #[must_use]
    pub fn first() -> u64 {
        FIRST_COUNTED_ID
    }

    /// Looks an id up, and takes a reference to its process; whether there is one.
    #[must_use]
    pub fn has(&self, id: u64) -> bool {
        self.registry.get(id).is_some()
    }

    /// Takes a process out, by its place among them, and puts it in again; whether there is one.
    pub fn replace(&self, nth: u64) -> bool {
        let task = usize::try_from(nth)
            .ok()
            .and_then(|nth| self.tasks.get(nth));
        if let Some(task) = task {
            self.registry.remove(task.pid.id());
            self.registry.insert(task);
        }
        task.is_some()
    }

    /// Takes an id of a user's choice and gives it back; whether it was free.
    pub fn reserve(&self, id: u64) -> bool {
        let is_free = self.registry.reserve(id);
        if is_free {
            self.registry.remove(id);
        }
        is_free
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.tasks.len();
        f.debug_tuple("Processes").field(&count).finish()
    }
}

/// Is never queued.
struct Still;

impl Process for Still {
    fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
        out.done(());
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
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
        let processes = Processes::new(&scheduler, 1, 3);
        let first = Processes::first();
        let has = |id| processes.has(first + id);
        assert_eq!([0, 2, 3].map(has), [true, true, false]);
        assert_eq!(
            [0, 2, 3].map(|nth| processes.replace(nth)),
            [true, true, false]
        );
        assert_eq!([0, 2, 3].map(has), [true, true, false]);
        assert!(processes.reserve(7) && processes.reserve(7));
        assert!(!processes.reserve(first));
        assert!(!processes.has(7));
        assert_eq!(scheduler.stats().live, 0);
    }
}
