//! The threads of workers: how they start, and what is said when none can.

use crate::contain::{is_heard, log};
use crate::crew::spares::{Hired, NoSpare};
use crate::crew::{Crew, Relief, Untold};
use crate::shared::Shared;
use crate::threads;
use crate::token::Token;
use crate::worker;
use ganger_deque::Worker as Deque;
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::{Mutex, lock};
use std::sync::Arc;
use std::thread;
use tracing::Level;

impl Crew {
    /// Puts a spare on duty in the place of a worker: see [`Crew::replace`]. Starts a thread when none waits.
    pub(crate) fn relieve(
        &self,
        shared: &Arc<Shared>,
        index: usize,
        relief: Option<Relief>,
    ) -> bool {
        let interval = shared.config.report_interval;
        let hire = |index, deque| start_worker(shared, index, deque);
        let note = |Relief { step, turn, line }| shared.reports.add(step, turn, line, interval);
        match self.replace(index, relief, hire, note) {
            Ok(is_relieved) => {
                if is_relieved {
                    // Its step may be over, and it may have fallen asleep before it was called.
                    shared.idle.wake(index);
                }
                is_relieved
            }
            Err(error) => {
                if self.has_to_warn(interval) {
                    warn(shared, error);
                }
                false
            }
        }
    }
}

/// Says that nobody is left: on a thread of its own, because a subscriber may wait for what one of those steps holds.
/// Neither the monitor may wait for that, nor a step that is about to block. Not while the one before is being said. If the
/// system grants none, the first worker says it that is free.
fn warn(shared: &Arc<Shared>, error: NoSpare) {
    let max_spares = shared.config.max_spares;
    #[cfg(feature = "sim")]
    if crate::sim::is_driven() {
        return error.log(max_spares);
    }
    let name = format!("{}-warning", shared.config.thread_name);
    let parcel = Arc::new(Mutex::new(Some(error)));
    let theirs = Arc::clone(&parcel);
    let is_warning = Arc::clone(&shared.crew.is_warning);
    // Ordering: Relaxed: nothing is read on the strength of it.
    if !is_heard(Level::WARN) || is_warning.swap(true, Ordering::Relaxed) {
        return;
    }
    let builder = thread::Builder::new().name(name);
    let spawned = threads::spawn_detached(builder, shared, move || {
        let error = lock(&theirs).take();
        if let Some(error) = error {
            error.log(max_spares);
        }
        // Ordering: Relaxed, as above.
        is_warning.store(false, Ordering::Relaxed);
    });
    if spawned.is_err()
        && let Some(error) = lock(&parcel).take()
    {
        // Ordering: Relaxed, as above.
        shared.crew.is_warning.store(false, Ordering::Relaxed);
        shared.crew.have_told(Untold::NoSpare(error));
        // One that has just looked whether there is something to tell is about to fall asleep.
        shared.idle.notify();
    }
}

impl NoSpare {
    /// To the subscriber.
    pub(crate) fn log(&self, max_spares: usize) {
        log(Level::WARN, || {
            tracing::warn!(
                target: "ganger::sched", max_spares, error = %self,
                "steps keep all workers, and processes wait until one returns"
            );
        });
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
