//! The scheduler, from the side of its owner.

use crate::api::builder::Builder;
use crate::api::handle::Handle;
use crate::api::line;
use crate::blocking;
use crate::config::BuildError;
use std::ops::Deref;
use std::sync::PoisonError;
use std::time::Duration;

/// Runs processes on worker threads. Dropping it stops it, with the builder's
/// [`shutdown_deadline`](Builder::shutdown_deadline): as [`Handle::stop`] does, or as
/// [`Handle::begin_stop`] does where `stop` is refused.
///
/// Dereferences to [`Handle`], which has the calls for users.
///
/// # After `fork`
/// The child of a `fork` has none of the threads: a submit there returns `Ok`, and the process
/// never runs. Build schedulers after the fork, or `exec` in the child, as `std::process::Command`
/// does.
///
/// # Example
/// ```
/// use ganger_proc_api::{BoxError, Context, Events, ExitReason, Process, StepOutput, StepResult};
/// use ganger_sched::Scheduler;
///
/// struct Answer;
/// impl Process for Answer {
///     fn step(&mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
///         out.done(42);
///         Ok(())
///     }
/// }
///
/// let scheduler = Scheduler::builder().start()?;
/// let exit = scheduler.spawn(Answer)?.wait();
/// assert!(matches!(exit, ExitReason::Done(answer) if answer.as_u64() == Some(42)));
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct Scheduler {
    handle: Handle,
}

/// Why a scheduler's workers were not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The scheduler can't be built, in [`Builder::start`].
    #[error(transparent)]
    Build(#[from] BuildError),
    /// They have been started before.
    #[error("the scheduler is already started")]
    AlreadyStarted,
    /// The scheduler has been stopped; build a new one.
    #[error("the scheduler has been stopped; build a new one")]
    Stopped,
    /// The system refused the thread of the monitor. No monitor has been started.
    #[error("can't start the monitor: {0}")]
    Monitor(std::io::Error),
    /// The system refused the thread of a worker. The workers before it run. Without any worker,
    /// the scheduler is stopping.
    #[error(
        "can't start worker {worker}: {error}; fewer `workers`, or a smaller `stack_size`, may help"
    )]
    Spawn {
        /// The worker whose thread was refused.
        worker: usize,
        /// The system's reason.
        error: std::io::Error,
    },
}

impl Builder {
    /// Builds the scheduler and starts it, as [`build`](Self::build) and [`Scheduler::start`] do.
    ///
    /// ```
    /// use ganger_sched::Scheduler;
    /// let scheduler = Scheduler::builder().workers(2).start()?;
    /// assert!(scheduler.is_started());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StartError`], also with a [`BuildError`] inside.
    pub fn start(self) -> Result<Scheduler, StartError> {
        let scheduler = self.build()?;
        scheduler.start()?;
        Ok(scheduler)
    }

    /// Builds the scheduler, for a later start. Handlers of commands are registered in between. The
    /// scheduler runs nothing before [`Scheduler::start`], and refuses a wait for its processes
    /// until then: see [`NotStarted`](crate::NotStarted).
    ///
    /// # Errors
    /// [`BuildError`] when a setting is out of its range, a name is not valid, workers can't be
    /// pinned as requested, or backtraces can't be taken, or not with the chosen signal.
    pub fn build(self) -> Result<Scheduler, BuildError> {
        let (handle, additions) = self.into_parts()?;
        let scheduler = Scheduler { handle };
        additions.into_iter().for_each(|add| add(&scheduler));
        Ok(scheduler)
    }
}

impl Scheduler {
    /// Returns a builder with the defaults.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts a scheduler with the defaults: a worker for each core, and no commands.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start_default() -> Result<Self, StartError> {
        Self::builder().start()
    }

    /// Starts the workers and freezes the command registry. Already submitted processes run now.
    ///
    /// # Errors
    /// [`StartError`] when it was started or stopped before, or the system refuses a thread.
    pub fn start(&self) -> Result<(), StartError> {
        let shared = &self.handle.shared;
        let starting = shared
            .start
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if shared.shutdown.is_stopping() {
            return Err(StartError::Stopped);
        }
        if shared.start.is_tried() {
            return Err(StartError::AlreadyStarted);
        }
        blocking::monitor::start(shared).map_err(StartError::Monitor)?;
        let deques = shared
            .start
            .take_deques()
            .ok_or(StartError::AlreadyStarted)?;
        shared.commands.freeze();
        let mut deques: Vec<_> = deques.into_iter().enumerate().collect();
        let spares = deques.split_off(shared.worker_slots.workers());
        shared.worker_slots.set_free(spares.into_iter());
        for (worker, deque) in deques {
            if let Err((error, _)) = blocking::start_worker(shared, worker, deque) {
                if !shared.start.is_served() {
                    // No worker would ever run the processes submitted now or before.
                    shared.shutdown.begin_stopping();
                    // The destructor of a handler may stop the scheduler, and a stop takes the
                    // lock.
                    drop(starting);
                    shared.commands.give_up(shared.own_counters());
                    shared.extensions.halt(shared.own_counters());
                    shared.begin_stop(Duration::ZERO);
                }
                return Err(StartError::Spawn { worker, error });
            }
            shared.start.begin_to_serve();
        }
        line::start(&self.handle);
        Ok(())
    }

    /// Returns a handle for other threads; it does not keep the scheduler running.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }
}

impl Deref for Scheduler {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let deadline = self.handle.shared.config.shutdown_deadline;
        if self.handle.stop(deadline).is_err() {
            // The stop would wait for this thread's own call.
            self.handle.begin_stop(deadline);
        }
    }
}
