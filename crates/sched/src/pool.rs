//! What ended processes leave for the next ones: their cells, and their slots in the registry, of which
//! the next ids are kept.
//!
//! **Problem.** A process is often started by one thread and ended by another: memory that one thread
//! asks for and another one gives back is what general allocators are slowest at, and a worker that waits
//! for an allocator's lock is a worker that blocks.
//!
//! **Protocol.** Each worker has a [`Cache`] of its own; all other threads share a few, each of which one thread uses at
//! a time. Who meets another thread at one goes on with the next, and stays there, so that those who start processes at
//! once soon have one each; and who finds all of them in use does without. What a cache has too much of goes to the pool, a batch at a time, and what it
//! lacks comes from there. Beyond [`BATCHES`] batches cells go back to the allocator.
//!
//! **The end.** A cell in the pool keeps the scheduler's memory alive, and the pool is a part of it: so
//! the pool takes nothing any more once it is closed, and each thread that ends after the halt empties it.

use crate::Task;
use crossbeam_queue::{ArrayQueue, SegQueue};
use ganger_sync::atomic::{Ordering, fence};
use ganger_sync::{CachePadded, TryLock, thread};
use std::cell::Cell;
use std::mem;
use std::sync::Arc;

/// What goes to the pool, and comes from there, at once.
const BATCH: usize = 64;

/// Batches of cells that the pool keeps.
const BATCHES: usize = 64;

/// Ids in slots that have never been used are claimed so many at a time.
pub(crate) const FRESH: u32 = 64;

/// Caches of the threads that are no workers.
const OUTSIDE: usize = 8;

pub(crate) struct Pool {
    cells: ArrayQueue<Vec<Task>>,
    ids: SegQueue<Vec<u64>>,
    /// Of all threads that are no workers.
    outside: [CachePadded<TryLock<Cache>>; OUTSIDE],
}

thread_local! {
    /// The cache that this thread tries first, where it is no worker: the one that it had last. Without a
    /// destructor, so that it is there in those of other thread-locals.
    static OWN: Cell<usize> = const { Cell::new(0) };
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
            outside: Default::default(),
        }
    }

    /// Calls `f` with a cache of the threads that are no workers. Never blocks.
    pub(crate) fn outside<R, F: FnOnce(&mut Cache) -> R>(&self, f: F) -> R {
        match self.outside[OWN.get()].try_with(f) {
            Ok(result) => result,
            Err(f) => self.elsewhere(f),
        }
    }

    /// As [`outside`](Self::outside), for who has just met another thread at the cache that was its own.
    #[cold]
    fn elsewhere<R, F: FnOnce(&mut Cache) -> R>(&self, f: F) -> R {
        let mut call = f;
        for place in 1..OUTSIDE {
            let place = (OWN.get() + place) % OUTSIDE;
            match self.outside[place].try_with(call) {
                Ok(result) => {
                    OWN.set(place);
                    return result;
                }
                Err(f) => call = f,
            }
        }
        self.without_cache(call)
    }

    /// Calls `f` with a cache for this once.
    fn without_cache<R>(&self, f: impl FnOnce(&mut Cache) -> R) -> R {
        let mut cache = Cache {
            // It takes a batch of cells for nobody.
            is_closed: true,
            ..Cache::default()
        };
        let result = f(&mut cache);
        cache.leave(self);
        result
    }

    /// Calls `f` with each of the caches of the threads that are no workers. Waits for who is using one.
    fn each_outside(&self, mut f: impl FnMut(&mut Cache)) {
        for cache in &self.outside {
            while cache.try_with(&mut f).is_err() {
                thread::yield_now();
            }
        }
    }

    /// Gives all cells back, for good. To be called by each of the threads that end after the halt.
    pub(crate) fn close(&self) {
        self.each_outside(|cache| cache.is_closed = true);
        self.release();
    }

    /// Gives the cells back that belong to no worker.
    pub(crate) fn release(&self) {
        let mut kept = Vec::new();
        self.each_outside(|cache| kept.append(&mut cache.cells));
        drop(kept);
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
        // To look whether there are any is cheaper than to find that there are none: that takes a full fence.
        if self.is_closed || pool.cells.is_empty() {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Calls `f` while so many of the caches are in use.
    fn beside(pool: &Pool, users: usize, f: &mut dyn FnMut()) {
        match users.checked_sub(1) {
            None => f(),
            Some(rest) => {
                let place = &pool.outside[rest];
                assert!(place.try_with(|_| beside(pool, rest, f)).is_ok());
            }
        }
    }

    #[test]
    fn whoever_uses_the_caches_another_thread_gets_what_it_needs() {
        let pool = Pool::new();
        let mut claimed = 0..0;
        let mut claim = |pool: &Pool| {
            let fresh = || {
                claimed = claimed.end..claimed.end + u64::from(FRESH);
                claimed.clone()
            };
            pool.outside(|cache| cache.take_id(pool, fresh))
        };
        let mut ids = Vec::new();
        for users in 0..=OUTSIDE {
            beside(&pool, users, &mut || ids.extend(claim(&pool)));
        }
        // The last one, without a cache, has left the rest of its ids to others.
        let rest = pool.ids.pop().unwrap();
        assert_eq!(rest.len(), FRESH as usize - 1);
        assert!(pool.ids.is_empty());
        ids.extend(rest);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), OUTSIDE + FRESH as usize);
    }

    fn is_closed(pool: &Pool) -> bool {
        let is_closed = |cache: &TryLock<Cache>| cache.try_with(|cache| cache.is_closed).ok();
        let mut all = pool.outside.iter().map(|cache| is_closed(cache));
        all.all(|is_closed| is_closed == Some(true))
    }

    #[test]
    fn to_close_it_reaches_each_cache() {
        let pool = Pool::new();
        assert!(!is_closed(&pool));
        pool.close();
        assert!(is_closed(&pool));
    }

    #[test]
    fn to_close_it_waits_for_who_uses_a_cache() {
        let pool = Pool::new();
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

    #[test]
    fn who_meets_another_thread_at_a_cache_goes_on_with_the_next() {
        let pool = Pool::new();
        let places = || {
            let place = |_| pool.outside(|_| ());
            (0..2).for_each(place);
            OWN.get()
        };
        OWN.set(0);
        assert_eq!(places(), 0);
        beside(&pool, 1, &mut || assert_eq!(places(), 1));
        assert_eq!(places(), 1, "and stays there");
    }
}
