//! The ids and the cells of processes: their sources for new processes, and their places after the
//! end. Also the running processes.

use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::local::{self, LocalQueue};
use crate::runtime::pool::{Cache, FRESH};
use crate::runtime::shared::Shared;
use ganger_proc_api::Pid;

impl Shared {
    /// Calls `f` with this thread's cache of ids and cells. `f` calls no user's code.
    pub(crate) fn with_cache<R>(&self, f: impl FnOnce(&mut Cache<ProcessCell>) -> R) -> R {
        local::with_either(self, |queue| match queue {
            Some(queue) => f(&mut queue.cache.borrow_mut()),
            None => self.census.pool.outside(f),
        })
    }

    /// Keeps the cell of an ended process for another process, if no other reference to the cell
    /// exists.
    pub(crate) fn keep_cell(&self, queue: &LocalQueue, cell: Task) {
        if !self.shutdown.is_halted() {
            queue.cache.borrow_mut().keep_cell(cell, &self.census.pool);
        }
    }

    /// Claims an id never used, or to be used, by another process of this scheduler; `None` when
    /// the ids are used up.
    pub(crate) fn claim_id(&self, cache: &mut Cache<ProcessCell>) -> Option<u64> {
        cache.take_id(&self.census.pool, || {
            self.census.registry.claim_fresh(FRESH)
        })
    }

    /// Frees an id, and gives the process back whose id it was, if it was visible.
    ///
    /// # Safety
    /// The conditions of [`Registry::remove`](crate::runtime::registry::Registry::remove).
    pub(crate) unsafe fn free_id(&self, id: u64) -> Option<Task> {
        // SAFETY: the contract of this function.
        let (task, next) = unsafe { self.census.registry.remove(id) };
        if let Some(next) = next {
            self.with_cache(|cache| cache.keep_id(next, &self.census.pool));
        }
        task
    }

    /// Returns the process in the worker's turn at this moment.
    pub(crate) fn running_on(&self, worker: usize) -> Option<Pid> {
        let id = self.census.turns.on(worker)?;
        Some(Pid::new(self.host, id))
    }

    /// Returns whether the worker is in this turn of this process.
    pub(crate) fn is_in_turn(&self, worker: usize, turn: u64, pid: Pid) -> bool {
        let turns = &self.counters.of(Some(worker)).turns;
        turns.get() == turn && self.census.turns.on(worker) == Some(pid.id())
    }

    /// Returns the processes that are inside a call at this moment.
    pub(crate) fn running_pids(&self) -> Vec<Pid> {
        let ids = self.census.turns.ids().into_iter();
        ids.map(|id| Pid::new(self.host, id)).collect()
    }
}
