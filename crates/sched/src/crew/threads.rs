//! The threads of workers: how they start, and how a spare replaces a worker.

use crate::crew::Crew;
use crate::crew::spares::Hired;
use crate::long_steps::NoticedStep;
use crate::shared::Shared;
use crate::threads;
use crate::token::Token;
use crate::worker;
use ganger_deque::Worker as Deque;
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;

impl Crew {
    /// Puts a spare in the place of a worker: see [`Crew::replace`]. Starts a thread when none waits.
    /// Reports the step for which the worker is replaced, if one is given.
    pub(crate) fn relieve(
        &self,
        shared: &Arc<Shared>,
        index: usize,
        step: Option<NoticedStep>,
    ) -> bool {
        let hire = |index, deque| start_worker(shared, index, deque);
        let note = || {
            if let Some(step) = step.clone() {
                shared.long_steps.add(step);
            }
        };
        match self.replace(index, hire, note) {
            Ok(false) => return false,
            Ok(true) => {
                // Its step may be over, and the worker may have fallen asleep before it was relieved.
                shared.idle.wake(index);
                step.into_iter().for_each(|step| shared.report_step(step));
            }
            Err(error) => {
                shared.report_no_spare(error);
                return false;
            }
        }
        true
    }
}

/// Starts the thread of a worker.
///
/// # Errors
/// When the system refuses one; with the deque inside.
pub(crate) fn start_worker(shared: &Arc<Shared>, index: usize, deque: Deque<Token>) -> Hired {
    #[cfg(feature = "sim")]
    let Some(deque) = crate::sim::hire(index, deque) else {
        return Ok(());
    };
    let builder = threads::builder(shared, index);
    // What a refused thread was to have is dropped with it.
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
