//! The turns that threads are in, as others see them: which process runs, and what a `stop` inside a turn
//! must not wait for.

use crate::local::{self, Held, Hold, LocalQueue};
use crate::shared::Shared;
use ganger_proc_api::Pid;
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, lock};
use std::mem;

/// No process has this id: the scheduler counts from 2^32 up, and never gets there.
const NOTHING: u64 = u64::MAX;

/// The processes that run, by their ids.
pub(crate) struct Turns {
    of_workers: Box<[CachePadded<AtomicU64>]>,
    /// On other threads, which happens in a shutdown only.
    elsewhere: Mutex<Vec<u64>>,
}

impl Turns {
    pub(crate) fn new(slots: usize) -> Self {
        let none = |_| CachePadded::new(AtomicU64::new(NOTHING));
        Self {
            of_workers: (0..slots).map(none).collect(),
            elsewhere: Mutex::new(Vec::new()),
        }
    }

    /// Says that this worker, or a thread that is none, runs the process, until the guard is dropped.
    pub(crate) fn begin(&self, worker: Option<usize>, pid: Pid) -> Running<'_> {
        match worker {
            Some(index) => {
                let place = &self.of_workers[index];
                // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
                place.store(pid.id(), Ordering::Relaxed);
                Running::Worker(place)
            }
            None => {
                lock(&self.elsewhere).push(pid.id());
                Running::Elsewhere(&self.elsewhere, pid.id())
            }
        }
    }

    /// The process that the worker runs at this moment.
    pub(crate) fn on(&self, worker: usize) -> Option<u64> {
        // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
        let id = self.of_workers[worker].load(Ordering::Relaxed);
        (id != NOTHING).then_some(id)
    }

    /// The processes that run at this moment.
    pub(crate) fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<_> = (0..self.of_workers.len())
            .filter_map(|worker| self.on(worker))
            .collect();
        ids.extend_from_slice(&lock(&self.elsewhere));
        ids
    }
}

/// See [`Turns::begin`].
pub(crate) enum Running<'a> {
    Worker(&'a AtomicU64),
    Elsewhere(&'a Mutex<Vec<u64>>, u64),
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        match self {
            // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
            Self::Worker(place) => place.store(NOTHING, Ordering::Relaxed),
            Self::Elsewhere(ids, mine) => {
                let mut ids = lock(ids);
                if let Some(at) = ids.iter().position(|id| id == mine) {
                    ids.swap_remove(at);
                }
            }
        }
    }
}

/// A worker on its thread, with what it needs in each of its turns.
#[derive(Clone, Copy)]
pub(crate) struct Seat<'a> {
    pub(crate) queue: &'a LocalQueue,
    running: &'a AtomicU64,
}

impl<'a> Seat<'a> {
    pub(crate) fn new(queue: &'a LocalQueue) -> Self {
        let running = &queue.shared.turns.of_workers[queue.index];
        Self { queue, running }
    }
}

/// A turn on this thread, until it is dropped.
pub(crate) enum InTurn<'a> {
    Seated(Seat<'a>),
    Elsewhere(#[expect(dead_code, reason = "guards")] (Hold, Running<'a>)),
}

impl<'a> InTurn<'a> {
    /// That of the process, on the worker that has the seat or on a thread that is none.
    #[inline]
    pub(crate) fn begin(shared: &'a Shared, seat: Option<Seat<'a>>, pid: Pid) -> Self {
        let Some(seat) = seat else {
            let running = shared.turns.begin(None, pid);
            return Self::Elsewhere((local::hold(shared, Held::Turn), running));
        };
        seat.queue.begin_turn();
        // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
        seat.running.store(pid.id(), Ordering::Relaxed);
        Self::Seated(seat)
    }

    /// Drops it. On a worker that is no call, as it is otherwise.
    #[inline]
    pub(crate) fn end(self) {
        if let Self::Seated(seat) = self {
            seat.end_turn();
            mem::forget(self);
        }
    }
}

impl Seat<'_> {
    #[inline]
    fn end_turn(self) {
        self.queue.end_turn();
        // Ordering: Relaxed: for reports, and for a guess at how much a worker has.
        self.running.store(NOTHING, Ordering::Relaxed);
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        if let Self::Seated(seat) = self {
            seat.end_turn();
        }
    }
}
