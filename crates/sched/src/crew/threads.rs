//! The threads of workers: how they start, and what is said when none can.

use crate::contain::log;
use crate::crew::spares::{Hired, NoSpare};
use crate::crew::{Crew, Relief};
use crate::reaper::Counted;
use crate::shared::Shared;
use crate::token::Token;
use crate::worker;
use ganger_deque::Worker as Deque;
#[cfg(test)]
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
                    warn(shared, &error);
                }
                false
            }
        }
    }
}

fn warn(shared: &Shared, error: &NoSpare) {
    let max_spares = shared.config.max_spares;
    log(Level::WARN, || {
        tracing::warn!(
            target: "ganger::sched", max_spares, %error,
            "steps keep all workers, and processes wait until one returns"
        );
    });
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
    let name = format!("{}-{index}", shared.config.thread_name);
    let mut builder = thread::Builder::new().name(name);
    if let Some(bytes) = shared.config.stack_size {
        builder = builder.stack_size(bytes);
    }
    // Ordering: Relaxed: one that is late only grants another thread.
    #[cfg(test)]
    if shared.crew.refuses_threads.load(Ordering::Relaxed) {
        // More than any system has.
        builder = builder.stack_size(usize::MAX / 4 * 3);
    }
    let counted = Counted::new(shared);
    let mine = Arc::clone(shared);
    // What a refused thread was to have is dropped with it.
    let parcel = Arc::new(Mutex::new(Some(deque)));
    let theirs = Arc::clone(&parcel);
    let spawned = builder.spawn(move || {
        let _counted = counted;
        let deque = lock(&theirs).take();
        if let Some(deque) = deque {
            worker::work(mine, index, deque);
        }
    });
    match spawned {
        Ok(_) => Ok(()),
        Err(error) => match lock(&parcel).take() {
            Some(deque) => Err((error, deque)),
            None => unreachable!("the thread that was to take it was refused"),
        },
    }
}
