//! Processes run once and end, submitted by each other, or by a thread outside of the scheduler.

use crate::one_worker::{OneWorker, ended};
use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult, process_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Condvar, Mutex, PoisonError};

/// The number of processes submitted from outside before any of them runs: few, so that memory is
/// used again.
pub(crate) const AT_ONCE: u64 = 512;

/// Runs a chain of processes: each submits the next, and ends.
pub(crate) fn chain(worker: &OneWorker, processes: u64) -> Result<(), BoxError> {
    let (last, ended) = mpsc::channel();
    let first = Link {
        left: processes,
        last: Some(last),
    };
    drop(worker.submit(first)?);
    Ok(ended.recv()?)
}

/// Submits all processes from this thread.
pub(crate) fn from_outside(worker: &OneWorker, processes: u64) -> Result<(), BoxError> {
    (0..processes / AT_ONCE).try_for_each(|_| at_once(worker, AT_ONCE))?;
    match processes % AT_ONCE {
        0 => Ok(()),
        rest => at_once(worker, rest),
    }
}

/// Submits all processes while the worker is kept busy, so that no submit wakes it.
fn at_once(worker: &OneWorker, processes: u64) -> Result<(), BoxError> {
    let (busy, is_busy) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let plug = worker.submit(process_fn(move |_, _, out| {
        out.done(());
        busy.send(())?;
        Ok(may_go.recv()?)
    }))?;
    is_busy.recv()?;
    worker.batch.begin(processes);
    for _ in 0..processes {
        let batch = worker.batch;
        drop(worker.submit(process_fn(move |_, _, out| {
            out.done(());
            batch.count_off();
            Ok(())
        }))?);
    }
    go.send(())?;
    ended(plug)?;
    worker.batch.wait();
    Ok(())
}

/// Counts down the processes until all have run.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    left: AtomicU64,
    all_ran: Mutex<bool>,
    changed: Condvar,
}

impl Batch {
    fn begin(&self, processes: u64) {
        // Ordering: Relaxed: the queue of submitted processes orders it.
        self.left.store(processes, Ordering::Relaxed);
    }

    fn count_off(&self) {
        // Ordering: Relaxed: only the count matters; the lock orders the rest.
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.all_ran.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.changed.notify_one();
        }
    }

    /// Blocks until all of them have run.
    fn wait(&self) {
        let guard = self.all_ran.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_while(guard, |all_ran| !*all_ran);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
    }
}

struct Link {
    left: u64,
    last: Option<Sender<()>>,
}

impl Process for Link {
    fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        out.done(());
        let last = self.last.take().ok_or("it runs once")?;
        match self.left.checked_sub(1) {
            Some(left) => {
                let next = Self {
                    left,
                    last: Some(last),
                };
                ctx.submit(next, "main", ())?;
            }
            None => last.send(())?,
        }
        Ok(())
    }
}
