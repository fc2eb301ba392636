//! Where processes have their turns: on a worker, or on another thread.

use crate::base::stats::Counter;
use crate::handlers::commands::OwnHandlers;
use crate::runtime::local::LocalQueue;
use crate::runtime::shared::Shared;
use crate::runtime::turns::{NOTHING, Running};
use ganger_os::Doing;
use ganger_proc_api::{CommandId, Handler, Pid};
use ganger_sync::atomic::{AtomicU64, Ordering};

/// Where processes have their turns.
pub(crate) trait TurnPlace<'a>: Copy {
    /// The part of a turn on its thread's stack.
    type Guard;

    /// Returns the worker's queue, on a worker.
    fn queue(self) -> Option<&'a LocalQueue>;

    /// Returns the handler of the command.
    fn handler(self, id: CommandId) -> Option<&'a dyn Handler>;

    /// Increases a counter of this thread.
    fn count(self, counter: &Counter);

    /// Begins the process's turn.
    fn begin(self, pid: Pid) -> Self::Guard;

    /// Ends the turn.
    fn end(self, guard: Self::Guard);

    /// Returns whether another process waits in the worker's deque.
    fn has_local_work(self) -> bool {
        self.queue().is_some_and(|queue| !queue.deque.is_empty())
    }
}

/// A worker on its thread, with the data for its turns.
///
/// A turn lasts until it is ended, also when something in it panics. So the caller containing the
/// panic ends the turn, and single calls do nothing while they unwind.
#[derive(Clone, Copy)]
pub(crate) struct OnWorker<'a> {
    queue: &'a LocalQueue,
    running: &'a AtomicU64,
}

// SAFETY: a single load reads the word.
unsafe impl Doing for OnWorker<'_> {
    /// Returns the id of the process whose turn it is, or [`NOTHING`].
    fn read(&self) -> u64 {
        // Ordering: Relaxed: the reader is the writing thread.
        self.running.load(Ordering::Relaxed)
    }
}

impl<'a> OnWorker<'a> {
    pub(crate) fn new(queue: &'a LocalQueue) -> Self {
        let running = queue.shared.census.turns.of_worker(queue.index);
        Self { queue, running }
    }

    /// Ends the turn, if any.
    pub(crate) fn end_turn(self) {
        // Ordering: Relaxed: for this thread, for reports, and for a guess, as in `begin`.
        self.running.store(NOTHING, Ordering::Relaxed);
    }
}

impl<'a> TurnPlace<'a> for OnWorker<'a> {
    type Guard = ();

    fn queue(self) -> Option<&'a LocalQueue> {
        Some(self.queue)
    }

    fn handler(self, id: CommandId) -> Option<&'a dyn Handler> {
        self.queue.handlers.get(&self.queue.shared.commands, id)
    }

    fn count(self, counter: &Counter) {
        counter.bump_own();
    }

    fn begin(self, pid: Pid) {
        self.queue.begin_turn();
        // Ordering: Relaxed: for this thread, for reports, and for a guess at how much a worker
        // has.
        self.running.store(pid.id(), Ordering::Relaxed);
    }

    fn end(self, (): ()) {
        self.end_turn();
    }
}

/// A thread other than a worker, with turns in a shutdown only.
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
        self.shared.census.turns.begin(None, pid)
    }

    fn end(self, guard: Self::Guard) {
        drop(guard);
    }
}
