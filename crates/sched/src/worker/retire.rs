//! How a replaced worker hands over its processes, and waits as a spare.

use super::Worker;
use crate::probe::{Probe, Push};
use crate::runtime::spares::Next;

impl Worker<'_> {
    /// Retires a worker that a spare has replaced: moves its processes to the global queue, and
    /// waits until the worker is needed.
    #[cold]
    pub(super) fn retire(&mut self) -> Next {
        let shared = self.shared;
        shared.reporting.long_steps.end(self.queue.index);
        if shared.shutdown.is_halted() {
            // The worker runs the queued processes a last time.
            return Next::Active;
        }
        self.give_away();
        let (keep, is_halted) = (shared.config.keep_spares, || shared.shutdown.is_halted());
        shared.probe.retiring(self.queue.index);
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
        // The checker must learn that this worker moves processes.
        shared.probe.looking(self.queue.index);
        while let Some(token) = self.take_oldest() {
            shared.push_global(Push::Moved, token);
        }
        self.shrink_after_burst();
        shared.queues.idle.notify_from_outside();
        if shared.timing.timer_waiter.is_used() {
            // No thread waits for the timers of this shard.
            shared.queues.idle.notify();
        }
        shared.probe.settled(self.queue.index);
    }

    pub(super) fn come_back(&mut self, next: Next) {
        self.rotation.restart(self.shared.timing.time.nanos());
        if next == Next::Active {
            self.shared.probe.looking(self.queue.index);
            self.shared.probe.searching(self.queue.index);
        }
    }
}
