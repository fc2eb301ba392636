//! Workers without threads, for `ganger-sim`: no part of the interface, and without its promises.
//!
//! A [`Machine`] has the workers and the monitor of a scheduler that has been started without threads. It
//! does nothing by itself: whoever has it says whose move is next, and what time it is. All of it belongs to
//! one thread. What the scheduler leaves to chance it asks the thread's [`Driver`].

mod driver;

pub use driver::{Driver, broken, drive, happens, pick};
pub(crate) use driver::{before_step, choose, note_broken, refuse_to_block};

use crate::clock::Clock;
use crate::handle::Handle;
use crate::local::LocalQueue;
use crate::monitor;
use crate::reaper;
use crate::scheduler::{Scheduler, StartError};
use crate::shared::Shared;
use crate::shutdown::StopReport;
use crate::stats::WorkerStats;
use crate::worker::simulated::Simulated;
use ganger_proc_api::Pid;
use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What a move was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Did {
    /// Nothing: there was no move to make.
    Nothing,
    /// A look that found nothing.
    Looked,
    /// A look that found a process.
    Found(Pid),
    /// Its search is over, and another is woken for what is left.
    TookUp(Pid),
    /// A turn of that process.
    Ran(Pid),
    /// It has said that it sleeps.
    Announced,
    /// There is something to do after all.
    Withdrew,
    /// It sleeps.
    FellAsleep,
    /// It has been woken.
    Woke,
    /// It has left, because the scheduler has halted.
    Left,
    /// The monitor has looked.
    Watched,
    /// The monitor sleeps until something waits.
    Dozed,
    /// The monitor has been woken.
    Roused,
}

/// A clock that shows what it is set to.
#[derive(Clone, Default)]
struct SetClock(Rc<Cell<Duration>>);

impl Clock for SetClock {
    fn now(&self) -> Duration {
        self.0.get()
    }
}

/// The workers and the monitor of a scheduler, and its shutdown, move by move.
pub struct Machine<'a> {
    shared: &'a Arc<Shared>,
    workers: Vec<Simulated<'a>>,
    monitor: monitor::simulated::Simulated<'a, SetClock>,
    clock: SetClock,
    /// What had been counted when the scheduler was stopped.
    before: Option<WorkerStats>,
}

impl fmt::Debug for Machine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("workers", &self.workers.len())
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

/// Starts a scheduler without threads, which has no spares, and calls `f` with its workers.
///
/// What `f` leaves undone stays undone: processes that have not ended never do.
///
/// # Errors
/// When it was started or stopped before.
pub fn run<R>(
    scheduler: &Scheduler,
    f: impl FnOnce(&Handle, &mut Machine<'_>) -> R,
) -> Result<R, StartError> {
    let handle: &Handle = scheduler;
    let shared = &handle.shared;
    if shared.shutdown.is_stopping() {
        return Err(StartError::Stopped);
    }
    let deques = shared.take_deques().ok_or(StartError::AlreadyStarted)?;
    let own = deques.into_iter().take(shared.crew.workers());
    let queues: Vec<_> = own
        .enumerate()
        .map(|(index, deque)| LocalQueue::new(Arc::clone(shared), index, deque))
        .collect();
    let clock = SetClock::default();
    let mut machine = Machine {
        shared,
        workers: queues.iter().map(Simulated::new).collect(),
        monitor: monitor::simulated::Simulated::new(shared, clock.clone()),
        clock,
        before: None,
    };
    let result = f(handle, &mut machine);
    for worker in machine.workers {
        worker.leave();
    }
    shared.pool.close();
    Ok(result)
}

impl Machine<'_> {
    /// How many workers there are.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Whether the worker has a move.
    #[must_use]
    pub fn can_move(&self, worker: usize) -> bool {
        self.workers[worker].can_move()
    }

    /// The worker's next move. With the first one the command registry is frozen.
    pub fn advance(&mut self, worker: usize) -> Did {
        if !self.shared.commands.is_frozen() {
            self.shared.commands.freeze();
        }
        self.workers[worker].advance()
    }

    /// Whether the monitor has a move at this time.
    #[must_use]
    pub fn monitor_can_move(&self) -> bool {
        self.monitor.can_move()
    }

    /// The monitor's next move.
    pub fn advance_monitor(&mut self) -> Did {
        self.monitor.advance()
    }

    /// When the monitor looks next, if not only after a wake-up.
    #[must_use]
    pub fn next_look(&self) -> Option<Duration> {
        self.monitor.next_look()
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Sets the time, which never goes back.
    pub fn set_now(&mut self, now: Duration) {
        self.clock.0.set(self.now().max(now));
    }

    /// Checks the promises that can be checked at this moment; returns whether that was anything: no worker
    /// was about to look or to wake somebody. What is broken panics, and is [noted](broken).
    pub fn audit(&self) -> bool {
        self.shared.check.audit(self.shared)
    }

    /// Whether something is queued anywhere.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.has_work()
    }

    /// How many processes have been submitted and not ended.
    #[must_use]
    pub fn live(&self) -> usize {
        self.shared.live.get()
    }

    /// Shutdown, first part: submits are refused, and every process gets a cancel event.
    pub fn begin_stop(&mut self) {
        self.before = Some(self.shared.counters.total());
        self.shared.shutdown.begin_stopping();
        reaper::tell_all(self.shared);
    }

    /// Second part: the deadline has passed. What is left ends at its next step boundary.
    pub fn force(&mut self) {
        self.shared.shutdown.begin_terminating();
        reaper::force(self.shared);
    }

    /// Third part: the workers leave when nothing is queued.
    pub fn halt(&mut self) {
        self.shared.shutdown.halt();
        self.shared.idle.notify_all();
        self.shared.idle.end_nap();
    }

    /// Whether all workers have left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.workers.iter().all(Simulated::is_gone)
    }

    /// What became of the processes that were alive when it was stopped.
    #[must_use]
    pub fn report(&self) -> StopReport {
        let before = self.before.unwrap_or_else(|| self.shared.counters.total());
        self.shared.report_since(&before)
    }
}
