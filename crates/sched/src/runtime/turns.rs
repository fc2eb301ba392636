//! The turns of the threads, as other threads see them: the running processes.

use ganger_proc_api::Pid;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, lock};

/// No process has this id: the scheduler counts from 2^32 up, and never gets there.
pub(crate) const NOTHING: u64 = u64::MAX;

/// The running processes, by their ids.
pub(crate) struct Turns {
    of_workers: Box<[CachePadded<AtomicU64>]>,
    /// Processes on other threads, in a shutdown only.
    off_workers: Mutex<Vec<u64>>,
}

impl Turns {
    pub(crate) fn new(slots: usize) -> Self {
        let none = |_| CachePadded::new(AtomicU64::new(NOTHING));
        Self {
            of_workers: (0..slots).map(none).collect(),
            off_workers: Mutex::new(Vec::new()),
        }
    }

    /// Announces the process that this thread, a worker or not, runs until the guard is dropped.
    pub(crate) fn begin(&self, worker: Option<usize>, pid: Pid) -> Running<'_> {
        match worker {
            Some(index) => {
                let place = &self.of_workers[index];
                // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
                place.store(pid.id(), Ordering::Relaxed);
                Running::Worker(place)
            }
            None => {
                lock(&self.off_workers).push(pid.id());
                Running::OffWorker(&self.off_workers, pid.id())
            }
        }
    }

    /// Returns the id of the process run by the worker, or [`NOTHING`]. The worker alone writes it.
    pub(crate) fn of_worker(&self, index: usize) -> &AtomicU64 {
        &self.of_workers[index]
    }

    /// Returns the process run by the worker at this moment.
    pub(crate) fn on(&self, worker: usize) -> Option<u64> {
        // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
        let id = self.of_workers[worker].load(Ordering::Relaxed);
        (id != NOTHING).then_some(id)
    }

    /// Returns the processes that run at this moment.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = (0..self.of_workers.len())
            .filter_map(|worker| self.on(worker))
            .collect();
        ids.extend_from_slice(&lock(&self.off_workers));
        ids
    }
}

/// See [`Turns::begin`].
pub(crate) enum Running<'a> {
    Worker(&'a AtomicU64),
    OffWorker(&'a Mutex<Vec<u64>>, u64),
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        match self {
            // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
            Self::Worker(place) => place.store(NOTHING, Ordering::Relaxed),
            Self::OffWorker(ids, mine) => {
                let mut ids = lock(ids);
                if let Some(at) = ids.iter().position(|id| id == mine) {
                    ids.swap_remove(at);
                }
            }
        }
    }
}
