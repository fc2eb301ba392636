//! What ended processes leave for the next ones: their cells, and their slots in the registry, of which
//! the next ids are kept.
//!
//! **Problem.** A process is often started by one thread and ended by another: memory that one thread
//! asks for and another one gives back is what general allocators are slowest at, and a worker that waits
//! for an allocator's lock is a worker that blocks.
//!
//! **Protocol.** Each worker has a [`Cache`] of its own; all other threads share one, under a lock. What a
//! cache has too much of goes to the pool, a batch at a time, and what it lacks comes from there. Beyond
//! [`BATCHES`] batches cells go back to the allocator.
//!
//! **The end.** A cell in the pool keeps the scheduler's memory alive, and the pool is a part of it: so
//! the pool takes nothing any more once it is closed, and each thread that ends after the halt empties it.

use crate::Task;
use crossbeam_queue::{ArrayQueue, SegQueue};
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::sync::{Mutex, lock};
use std::mem;
use std::sync::Arc;

/// What goes to the pool, and comes from there, at once.
const BATCH: usize = 64;

/// Batches of cells that the pool keeps.
const BATCHES: usize = 64;

/// Ids in slots that have never been used are claimed so many at a time.
pub(crate) const FRESH: u32 = 64;

pub(crate) struct Pool {
    cells: ArrayQueue<Vec<Task>>,
    ids: SegQueue<Vec<u64>>,
    /// Of all threads that are no workers.
    outside: Mutex<Cache>,
}

/// What one thread keeps.
#[derive(Default)]
pub(crate) struct Cache {
    /// Nobody else refers to them.
    cells: Vec<Task>,
    /// Claimed in the registry, for nobody yet.
    ids: Vec<u64>,
    is_closed: bool,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self {
            cells: ArrayQueue::new(BATCHES),
            ids: SegQueue::new(),
            outside: Mutex::new(Cache::default()),
        }
    }

    /// Calls `f` with the cache of the threads that are no workers.
    pub(crate) fn outside<R>(&self, f: impl FnOnce(&mut Cache) -> R) -> R {
        f(&mut lock(&self.outside))
    }

    /// Gives all cells back, for good. To be called by each of the threads that end after the halt.
    pub(crate) fn close(&self) {
        self.outside(|cache| cache.is_closed = true);
        self.release();
    }

    /// Gives the cells back that belong to no worker.
    pub(crate) fn release(&self) {
        drop(self.outside(|cache| mem::take(&mut cache.cells)));
        while let Some(cells) = self.cells.pop() {
            drop(cells);
        }
    }
}

impl Cache {
    /// A cell to be used again, which nobody else refers to.
    pub(crate) fn take_cell(&mut self, pool: &Pool) -> Option<Task> {
        if let Some(cell) = self.cells.pop() {
            return Some(cell);
        }
        if self.is_closed {
            return None;
        }
        self.cells = pool.cells.pop()?;
        self.cells.pop()
    }

    /// Keeps a cell that nobody uses any more, if nobody else refers to it.
    pub(crate) fn keep_cell(&mut self, cell: Task, pool: &Pool) {
        if Arc::strong_count(&cell) > 1 {
            return;
        }
        // Ordering: Acquire pairs with the Release of those who have dropped their references: what they
        // did with the cell comes before its next use. There are no weak references.
        fence(Ordering::Acquire);
        self.cells.push(cell);
        if self.cells.len() >= 2 * BATCH {
            let batch = self.cells.split_off(BATCH);
            // One that does not fit goes back to the allocator.
            let _full = pool.cells.push(batch);
        }
    }

    /// An id that is free; `claim` gives some that nobody has had.
    pub(crate) fn take_id(
        &mut self,
        pool: &Pool,
        claim: impl FnOnce() -> std::ops::Range<u64>,
    ) -> Option<u64> {
        if self.ids.is_empty() {
            match pool.ids.pop() {
                Some(ids) => self.ids = ids,
                None => self.ids.extend(claim().rev()),
            }
        }
        self.ids.pop()
    }

    /// Keeps an id that is free.
    pub(crate) fn keep_id(&mut self, id: u64, pool: &Pool) {
        self.ids.push(id);
        if self.ids.len() >= 4 * BATCH {
            pool.ids.push(self.ids.split_off(2 * BATCH));
        }
    }

    /// Leaves all ids to others.
    pub(crate) fn leave(&mut self, pool: &Pool) {
        let ids = mem::take(&mut self.ids);
        if !ids.is_empty() {
            pool.ids.push(ids);
        }
    }
}
