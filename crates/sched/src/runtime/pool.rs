//! The pool of ended processes' cells, and of the next ids of their slots in the registry.
//!
//! **Problem.** A process is often started by one thread and ended by another. General allocators
//! are slowest at memory asked for by a thread and returned by another. And a worker waiting for an
//! allocator's lock is a blocked worker.
//!
//! **Protocol.** Each worker has a [`Cache`] of its own; all other threads share a cache. A thread
//! that finds the shared cache in use looks again a few times, and then does without. A cache
//! returns its surplus to the pool, a batch at a time, and refills itself from there. Beyond
//! [`BATCHES`] batches cells go back to the allocator.
//!
//! **Rejected.** A cache for each thread: a thread at its end would have to hand over its cells and
//! ids, in a destructor of a thread-local.
//!
//! **The end.** A cell in the pool keeps the scheduler's memory alive, and with it the pool. So the
//! pool takes nothing once it is closed, and each thread that ends after the halt empties it.

use crossbeam_queue::{ArrayQueue, SegQueue};
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::{CachePadded, TryLock, hint, thread};
use std::mem;
use std::sync::Arc;

/// The number of cells or ids moved to or from the pool at once.
const BATCH: usize = 64;

/// The limit of batches of cells in the pool.
const BATCHES: usize = 64;

/// The number of ids in fresh slots claimed at a time.
pub(crate) const FRESH: u32 = 64;

/// How often a thread other than a worker looks whether the shared cache is free. A use takes some
/// dozens of instructions, unless its thread is suspended.
const LOOKS: usize = 64;

pub(crate) struct Pool<T> {
    cells: ArrayQueue<Vec<Arc<T>>>,
    ids: SegQueue<Vec<u64>>,
    /// The cache of all threads other than workers.
    outside: CachePadded<TryLock<Cache<T>>>,
}

/// The cells and ids of a worker, or of all other threads.
pub(crate) struct Cache<T> {
    /// Nothing else refers to them.
    cells: Vec<Arc<T>>,
    /// Claimed in the registry, and given to no process yet.
    ids: Vec<u64>,
    is_closed: bool,
}

impl<T> Pool<T> {
    pub(crate) fn new() -> Self {
        Self {
            cells: ArrayQueue::new(BATCHES),
            ids: SegQueue::new(),
            outside: CachePadded::default(),
        }
    }

    /// Calls `f` with the cache of the threads other than workers. Never blocks.
    pub(crate) fn outside<R, F: FnOnce(&mut Cache<T>) -> R>(&self, f: F) -> R {
        match self.outside.try_with(f) {
            Ok(result) => result,
            Err(f) => self.look_again(f),
        }
    }

    /// Looks again as [`outside`](Self::outside) does, for a thread that has just found another
    /// thread at the cache.
    #[cold]
    fn look_again<R, F: FnOnce(&mut Cache<T>) -> R>(&self, f: F) -> R {
        let mut call = f;
        for _ in 1..LOOKS {
            hint::spin_loop();
            match self.outside.try_with(call) {
                Ok(result) => return result,
                Err(f) => call = f,
            }
        }
        self.without_cache(call)
    }

    /// Calls `f` with a cache for this once.
    fn without_cache<R>(&self, f: impl FnOnce(&mut Cache<T>) -> R) -> R {
        let mut cache = Cache {
            // A batch of cells would come for a single cell.
            is_closed: true,
            ..Cache::default()
        };
        let result = f(&mut cache);
        cache.leave(self);
        result
    }

    /// Calls `f` with the cache of the threads other than workers. Waits for the thread using it.
    fn wait_for_outside(&self, mut f: impl FnMut(&mut Cache<T>)) {
        while self.outside.try_with(&mut f).is_err() {
            thread::yield_now();
        }
    }

    /// Returns all cells, for good. Each thread that ends after the halt calls it.
    pub(crate) fn close(&self) {
        self.wait_for_outside(|cache| cache.is_closed = true);
        self.release();
    }

    /// Returns the cells that belong to no worker.
    pub(crate) fn release(&self) {
        let mut kept = Vec::new();
        self.wait_for_outside(|cache| kept = cache.take_cells());
        drop(kept);
        while let Some(cells) = self.cells.pop() {
            drop(cells);
        }
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            ids: Vec::new(),
            is_closed: false,
        }
    }
}

impl<T> Cache<T> {
    /// Takes a cell for another use, to which no other reference exists.
    pub(crate) fn take_cell(&mut self, pool: &Pool<T>) -> Option<Arc<T>> {
        let cell = self.cells.pop();
        if cell.is_some() {
            return cell;
        }
        // Look first: popping from an empty `ArrayQueue` costs a full fence.
        if self.is_closed || pool.cells.is_empty() {
            return None;
        }
        self.cells = pool.cells.pop()?;
        self.cells.pop()
    }

    /// Keeps a cell for a later process, unless something else refers to it.
    pub(crate) fn keep_cell(&mut self, cell: Arc<T>, pool: &Pool<T>) {
        if Arc::strong_count(&cell) > 1 {
            return;
        }
        // Ordering: Acquire pairs with the Release of the threads that have dropped their
        // references: their accesses to the cell come before its next use. No weak references
        // exist.
        fence(Ordering::Acquire);
        self.cells.push(cell);
        if self.cells.len() >= 2 * BATCH {
            let batch = self.cells.split_off(BATCH);
            // A batch that does not fit goes back to the allocator.
            let _full = pool.cells.push(batch);
        }
    }

    /// Takes all cells out.
    pub(crate) fn take_cells(&mut self) -> Vec<Arc<T>> {
        mem::take(&mut self.cells)
    }

    /// Takes a free id; `claim` returns never used ids.
    pub(crate) fn take_id(
        &mut self,
        pool: &Pool<T>,
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

    /// Keeps a free id.
    pub(crate) fn keep_id(&mut self, id: u64, pool: &Pool<T>) {
        self.ids.push(id);
        if self.ids.len() >= 4 * BATCH {
            pool.ids.push(self.ids.split_off(2 * BATCH));
        }
    }

    /// Leaves all ids to other threads.
    pub(crate) fn leave(&mut self, pool: &Pool<T>) {
        let ids = mem::take(&mut self.ids);
        if !ids.is_empty() {
            pool.ids.push(ids);
        }
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_an_id_also_while_another_one_uses_the_cache() {
        let pool = Pool::<()>::new();
        let mut claimed = 0..0;
        let mut claim = |pool: &Pool<()>| {
            let fresh = || {
                claimed = claimed.end..claimed.end + u64::from(FRESH);
                claimed.clone()
            };
            pool.outside(|cache| cache.take_id(pool, fresh))
        };
        let mut ids = Vec::new();
        ids.extend(claim(&pool));
        let inside = pool.outside.try_with(|_| ids.extend(claim(&pool)));
        assert!(inside.is_ok());
        // The second thread, without a cache, has left the rest of its ids to others.
        let rest = pool.ids.pop().unwrap();
        assert_eq!(rest.len(), FRESH as usize - 1);
        assert!(pool.ids.is_empty());
        ids.extend(rest);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1 + FRESH as usize);
    }

    fn is_closed(pool: &Pool<()>) -> bool {
        pool.outside.try_with(|cache| cache.is_closed).ok() == Some(true)
    }

    #[test]
    fn a_close_waits_for_the_thread_that_uses_the_cache() {
        let pool = Pool::<()>::new();
        assert!(!is_closed(&pool));
        std::thread::scope(|scope| {
            let (entered, has_entered) = std::sync::mpsc::channel();
            let user = &pool;
            scope.spawn(move || {
                user.outside(|cache| {
                    entered.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    assert!(!cache.is_closed, "while it was in use");
                });
            });
            has_entered.recv().unwrap();
            pool.close();
        });
        assert!(is_closed(&pool));
    }
}
