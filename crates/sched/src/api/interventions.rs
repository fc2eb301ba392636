//! Acts of an operator on a process, besides cancellation and termination.

use crate::api::handle::Handle;
use crate::process::state::ProcessState;
use crate::runtime::cell::Task;
use crate::runtime::interventions::{Suspended, Unsuspended};
use crate::runtime::item::Item;
use ganger_proc_api::Pid;

/// Why an intervention is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterventionError {
    /// The builder has not allowed interventions.
    #[error("this scheduler allows no interventions: build it with `Builder::allow_interventions`")]
    NotAllowed,
    /// No live process has the PID.
    #[error("can't intervene in {0}: no live process of this scheduler has that PID")]
    NotFound(Pid),
    /// The scheduler stops.
    #[error("the scheduler stops, and no process of it stands still any more")]
    Stopping,
}

/// Acts of an operator, where
/// [`Builder::allow_interventions`](crate::Builder::allow_interventions) allows them.
impl Handle {
    /// Whether the builder has allowed interventions.
    #[must_use]
    pub fn allows_interventions(&self) -> bool {
        self.shared.config.interventions
    }

    /// Suspends the process: it takes no steps until [`resume`](Self::resume). Never blocks.
    ///
    /// A running turn goes on to its end. The answer tells whether the process stands already, and
    /// so does the answer of a second call, without a further effect.
    ///
    /// The process keeps its mailbox, its commands and its links. Messages, completions, notices
    /// and a request to cancel wait in their order, within the limits of the mailbox. Terminating
    /// the process ends it at once. When the scheduler stops, all processes take steps again.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::{ProcessState, Scheduler, Suspended};
    ///
    /// let scheduler = Scheduler::builder().allow_interventions().start()?;
    /// let counter = scheduler.spawn(actor_fn(|_, _: u64, out| Ok(out.done(()))))?;
    /// while scheduler.suspend(counter.pid())? != Suspended::Stands {
    ///     std::thread::yield_now();
    /// }
    /// counter.send(7)?;
    /// let state = scheduler.process(counter.pid()).map(|it| it.state);
    /// assert_eq!(state, Some(ProcessState::Suspended));
    /// assert!(scheduler.resume(counter.pid())?);
    /// counter.wait();
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`InterventionError`].
    pub fn suspend(&self, pid: Pid) -> Result<Suspended, InterventionError> {
        let task = self.intervened(pid)?;
        let suspended = (self.shared.interventions).suspend(task.id, || task.state.intervene());
        let (suspended, owes_nudge) = suspended.map_err(|error| match error {
            Unsuspended::Stops => InterventionError::Stopping,
            Unsuspended::Ended => InterventionError::NotFound(pid),
        })?;
        if owes_nudge {
            // A process that ends meanwhile needs no nudge.
            let _has_ended = task.push(Item::Nudge);
        }
        Ok(suspended)
    }

    /// Lets the process take steps again. Returns whether the process was suspended.
    ///
    /// # Errors
    /// [`InterventionError`].
    pub fn resume(&self, pid: Pid) -> Result<bool, InterventionError> {
        let task = self.intervened(pid)?;
        let (was_suspended, token) = self.shared.interventions.resume(task.id);
        task.release(token);
        Ok(was_suspended)
    }

    /// The live process with the PID.
    fn intervened(&self, pid: Pid) -> Result<Task, InterventionError> {
        if !self.allows_interventions() {
            return Err(InterventionError::NotAllowed);
        }
        let task = self.shared.find(pid);
        let alive = task.filter(|it| it.state.snapshot().state() != ProcessState::Complete);
        alive.ok_or(InterventionError::NotFound(pid))
    }
}
