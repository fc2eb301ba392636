//! The threads of workers: how they start, and how a spare replaces a worker.

use crate::probe::{Decide, Decider, Probe};
use crate::reports::long_steps::NoticedStep;
use crate::runtime::shared::Shared;
use crate::runtime::spares::Spawned;
use crate::runtime::threads;
use crate::runtime::token::Token;
use crate::worker;
use ganger_deque::Worker as Deque;
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;

impl Shared {
    /// Puts a spare in the place of a worker: see [`WorkerSlots::replace`]. Starts a thread when
    /// none waits. Reports the step for which the worker is replaced, if given.
    ///
    /// [`WorkerSlots::replace`]: crate::runtime::worker_slots::WorkerSlots::replace
    pub(crate) fn replace_worker(
        self: &Arc<Self>,
        index: usize,
        step: Option<NoticedStep>,
    ) -> bool {
        let spawn = |index, deque| start_worker(self, index, deque);
        let note = || {
            if let Some(step) = step.clone() {
                self.reporting.long_steps.add(step);
            }
        };
        match self.worker_slots.replace(index, spawn, note) {
            Ok(false) => return false,
            Ok(true) => {
                self.probe.replaced(index);
                // Its step may be over, and the worker may have fallen asleep before it was
                // replaced.
                self.queues.idle.wake(index);
                step.into_iter().for_each(|step| self.report_step(step));
            }
            Err(error) => {
                self.report_no_spare(error);
                return false;
            }
        }
        true
    }
}

/// Starts the thread of a worker.
///
/// # Errors
/// When the system refuses the thread; with the deque inside.
pub(crate) fn start_worker(shared: &Arc<Shared>, index: usize, deque: Deque<Token>) -> Spawned {
    let Some(deque) = Decider::hire(shared.number, index, deque) else {
        return Ok(());
    };
    let builder = threads::builder(shared, index);
    // The deque of a refused thread is dropped with it.
    let parcel = Arc::new(Mutex::new(Some(deque)));
    let theirs = Arc::clone(&parcel);
    let spawned = threads::spawn_and_then(builder, shared, move |shared| {
        let deque = lock(&theirs).take();
        let then = deque.map(|deque| worker::work(Arc::clone(shared), index, deque));
        |shared: &Shared| then.into_iter().for_each(|then| then(shared))
    });
    match spawned {
        Ok(()) => Ok(()),
        Err(error) => match lock(&parcel).take() {
            Some(deque) => Err((error, deque)),
            None => unreachable!("the thread that was to take it was refused"),
        },
    }
}
