//! A worker's look into the driver, and its queueing of ready processes. `worker/batch.rs` decides
//! how long the worker keeps them.

use super::Worker;
use crate::policy::DRIVER_UNSEEN;
use crate::runtime::token::Token;

impl Worker<'_> {
    /// Measures the turns since the last visit, when the worker is about to enter the driver.
    pub(super) fn enter_driver(&mut self) {
        let shared = self.shared;
        if shared.timing.driven.is_some() {
            self.batch.enter(self.counters.turns.get(), || shared.now());
        }
    }

    /// Queues the processes made ready in the driver, and keeps them if they are soon over.
    pub(super) fn leave_driver(&mut self, ready: Vec<Token>) {
        let until = match &self.shared.timing.driven {
            Some(driven) if !ready.is_empty() => {
                self.batch.leave(ready.len(), driven.waiter.left())
            }
            _ => 0,
        };
        self.queue.keep_until(until);
        self.shared.schedule_ready(self.queue, ready);
    }

    /// Polls the driver, unless another thread does. Returns whether a process was ready.
    pub(super) fn look_in_driver(&mut self) -> bool {
        let shared = self.shared;
        // The call may last, and pushers rely on a searching worker.
        let ready = shared.look_in_driver(|| {
            self.stop_searching();
            self.enter_driver();
        });
        let is_ready = !ready.is_empty();
        if is_ready {
            self.leave_driver(ready);
        }
        is_ready
    }

    /// Polls the driver, if no thread has for a while.
    #[cold]
    #[inline(never)]
    pub(super) fn look_in_driver_late(&mut self) {
        let left = (self.shared.timing.driven.as_ref()).map(|driven| driven.waiter.left());
        if left.is_some_and(|left| self.shared.now() >= left.saturating_add(DRIVER_UNSEEN)) {
            self.look_in_driver();
            self.shared.queues.idle.defer();
        }
    }
}
