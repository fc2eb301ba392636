//! The turns that threads are in, as others see them: which process runs.

use crate::base::stats::Counter;
use crate::handlers::commands::OwnHandlers;
use crate::runtime::local::LocalQueue;
use crate::runtime::shared::Shared;
use ganger_proc_api::{CommandId, Handler, Pid};
use ganger_sync::CachePadded;
use ganger_sync::atomic::{AtomicU64, Ordering};
use ganger_sync::sync::{Mutex, lock};

/// No process has this id: the scheduler counts from 2^32 up, and never gets there.
const NOTHING: u64 = u64::MAX;

/// The processes that run, by their ids.
pub(crate) struct Turns {
    of_workers: Box<[CachePadded<AtomicU64>]>,
    /// On other threads, which happens in a shutdown only.
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

    /// Says that this worker, or a thread that is none, runs the process, until the guard is
    /// dropped.
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

/// Where processes have their turns.
pub(crate) trait TurnPlace<'a>: Copy {
    /// What there is of a turn on its thread's stack.
    type Guard;

    /// The worker's queue, on a worker.
    fn queue(self) -> Option<&'a LocalQueue>;

    /// The handler that carries out the command.
    fn handler(self, id: CommandId) -> Option<&'a dyn Handler>;

    /// Adds one to a counter of this thread.
    fn count(self, counter: &Counter);

    /// The process's turn begins.
    fn begin(self, pid: Pid) -> Self::Guard;

    /// It is over.
    fn end(self, guard: Self::Guard);

    /// Whether another process waits in the worker's deque.
    #[inline]
    fn has_local_work(self) -> bool {
        self.queue().is_some_and(|queue| !queue.deque.is_empty())
    }
}

/// A worker on its thread, with what it needs in each of its turns.
///
/// A turn lasts until it is ended, also when something in it panics. So the caller that contains
/// the panic ends the turn, and single calls do nothing on the way out.
#[derive(Clone, Copy)]
pub(crate) struct OnWorker<'a> {
    queue: &'a LocalQueue,
    running: &'a AtomicU64,
}

impl<'a> OnWorker<'a> {
    pub(crate) fn new(queue: &'a LocalQueue) -> Self {
        let running = &queue.shared.turns.of_workers[queue.index];
        Self { queue, running }
    }

    /// The turn is over, if there is one.
    #[inline]
    pub(crate) fn end_turn(self) {
        // Ordering: Relaxed, as in `begin`.
        self.running.store(NOTHING, Ordering::Relaxed);
    }
}

impl<'a> TurnPlace<'a> for OnWorker<'a> {
    type Guard = ();

    #[inline]
    fn queue(self) -> Option<&'a LocalQueue> {
        Some(self.queue)
    }

    #[inline]
    fn handler(self, id: CommandId) -> Option<&'a dyn Handler> {
        self.queue.handlers.get(&self.queue.shared.commands, id)
    }

    #[inline]
    fn count(self, counter: &Counter) {
        counter.bump_own();
    }

    #[inline]
    fn begin(self, pid: Pid) {
        self.queue.begin_turn();
        // Ordering: Relaxed: for this thread, for reports, and for a guess at how much a worker
        // has.
        self.running.store(pid.id(), Ordering::Relaxed);
    }

    #[inline]
    fn end(self, (): ()) {
        self.end_turn();
    }
}

/// A thread that is no worker. It has turns in a shutdown only.
#[derive(Clone, Copy)]
pub(crate) struct OffWorker<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) handlers: &'a OwnHandlers,
}

impl<'a> TurnPlace<'a> for OffWorker<'a> {
    type Guard = Running<'a>;

    fn queue(self) -> Option<&'a LocalQueue> {
        None
    }

    fn handler(self, id: CommandId) -> Option<&'a dyn Handler> {
        self.handlers.get(&self.shared.commands, id)
    }

    fn count(self, counter: &Counter) {
        counter.bump();
    }

    fn begin(self, pid: Pid) -> Self::Guard {
        self.shared.turns.begin(None, pid)
    }

    fn end(self, guard: Self::Guard) {
        drop(guard);
    }
}
