//! How a worker that has been replaced gives its place away, and waits to be needed again.

use super::Worker;
use crate::probe::{Probe, Push};
use crate::runtime::spares::Next;

impl Worker<'_> {
    /// A spare has taken this worker's place: moves what the worker has to the others, and waits
    /// until the worker is needed.
    #[cold]
    pub(super) fn retire(&mut self) -> Next {
        let shared = self.shared;
        shared.reporting.long_steps.end(self.queue.index);
        if shared.shutdown.is_halted() {
            // The worker runs once more whatever is queued, and then all is over.
            return Next::Active;
        }
        self.give_away();
        let (keep, is_halted) = (shared.config.keep_spares, || shared.shutdown.is_halted());
        let next = shared
            .worker_slots
            .retire(self.queue.index, keep, is_halted);
        self.come_back(next);
        next
    }

    /// Moves the worker's deque to the global queue.
    pub(super) fn give_away(&mut self) {
        let shared = self.shared;
        self.mark_searching();
        // After a turn the checker has not heard yet that this worker moves processes.
        shared.probe.looking(self.queue.index);
        while let Some(token) = self.take_oldest() {
            shared.push_global(Push::Moved, token);
        }
        self.shrink_after_burst();
        shared.queues.idle.notify_from_outside();
        if shared.timing.timer_waiter.is_used() {
            // What is due at this seat is uncovered.
            shared.queues.idle.notify();
        }
        shared.probe.settled(self.queue.index);
    }

    pub(super) fn come_back(&mut self, next: Next) {
        self.rotation.restart(self.shared.timing.time.nanos());
        if next == Next::Active {
            self.shared.probe.looking(self.queue.index);
        }
    }
}
