//! Acts of an operator on a process, besides cancellation and termination.

use crate::api::call::Call;
use crate::api::handle::{Handle, WeakHandle};
use crate::base::contain::contain;
use crate::process::state::ProcessState;
use crate::runtime::cell::Task;
use crate::runtime::interventions::{Suspended, Unasked, Unsuspended};
use crate::runtime::item::Item;
use ganger_proc_api::{Pid, Process, Reply};

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
    /// As many questions as fit wait for the process.
    #[error("16 questions wait for {0} already: its step does not end, or no worker is free")]
    Busy(Pid),
    /// The scheduler stops.
    #[error("the scheduler stops, and no process of it stands still any more")]
    Stopping,
}

/// The hook [`Process::inspect`] of a process has panicked. The process goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the hook `inspect` of {pid} has panicked: {message}; the process goes on")]
#[non_exhaustive]
pub struct InspectPanicked {
    /// The process.
    pub pid: Pid,
    /// The message of the panic.
    pub message: Box<str>,
}

/// The most bytes of a state.
const STATE: usize = 64 << 10;

/// Cuts the text off at the limit.
fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(STATE));
    text
}

/// Acts of an operator, where
/// [`Builder::allow_interventions`](crate::Builder::allow_interventions) allows them.
impl Handle {
    /// Returns whether the builder has allowed interventions.
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
    /// A supervisor that stops a suspended child waits for its whole shutdown timeout, and
    /// terminates it then: resume the child first.
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

    /// Asks the process for its state, by the hook of its type: [`Process::inspect`]. The answer is
    /// `None` without a hook, and at most 64 KiB of its text.
    ///
    /// The worker of the process calls the hook between two steps, before all events in the
    /// mailbox, and also while the process is suspended. A step that does not end keeps the answer
    /// away: wait with a timeout. A panic of the hook is the answer, as [`InspectPanicked`], and
    /// the process goes on.
    ///
    /// ```
    /// use ganger_proc_api::{Actor, BoxError, Context, StepOutput, StepResult};
    /// use ganger_sched::Scheduler;
    ///
    /// struct Cart(Vec<String>);
    ///
    /// impl Actor for Cart {
    ///     type Message = String;
    ///
    ///     fn receive(&mut self, _: &Context, it: String, _: &mut StepOutput) -> StepResult {
    ///         Ok(self.0.push(it))
    ///     }
    ///
    ///     fn inspect(&self) -> Option<String> {
    ///         Some(format!("{} things", self.0.len()))
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().allow_interventions().start()?;
    /// let cart = scheduler.spawn(Cart(Vec::new()))?;
    /// let state = scheduler.inspect(cart.pid()).wait()?;
    /// assert_eq!(state.as_deref(), Some("0 things"));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// The error of the answer is an [`InterventionError`] or an [`InspectPanicked`] inside of
    /// [`CommandError::Failed`](ganger_proc_api::CommandError::Failed). A process that ends first
    /// drops the question.
    pub fn inspect(&self, pid: Pid) -> Call<Option<String>> {
        let pass = move |scheduler: WeakHandle, reply: Reply<Option<String>>| {
            let not_found = InterventionError::NotFound(pid);
            let scheduler = scheduler.upgrade().ok_or(not_found)?;
            Ok(scheduler.ask_for_state(pid, reply)?)
        };
        Call::by_inside(self.downgrade(), |scheduler| Some(scheduler), pass)
    }

    fn ask_for_state(
        &self,
        pid: Pid,
        reply: Reply<Option<String>>,
    ) -> Result<(), InterventionError> {
        let task = self.intervened(pid)?;
        let question = Box::new(move |process: &dyn Process| {
            if reply.is_cancelled() {
                return;
            }
            match contain(|| process.inspect()) {
                Ok(state) => reply.complete(state.map(cut)),
                Err(message) => reply.fail(InspectPanicked { pid, message }),
            }
        });
        let interventions = &self.shared.interventions;
        match interventions.ask(task.id, question, || task.state.intervene()) {
            Ok(Some(token)) => task.release(Some(token)),
            // A process that ends meanwhile needs no nudge.
            Ok(None) => _ = task.push(Item::Nudge),
            Err((_, Unasked::TooMany)) => return Err(InterventionError::Busy(pid)),
            Err((_, Unasked::Ended)) => return Err(InterventionError::NotFound(pid)),
        }
        Ok(())
    }

    /// Returns the live process with the PID.
    fn intervened(&self, pid: Pid) -> Result<Task, InterventionError> {
        if !self.allows_interventions() {
            return Err(InterventionError::NotAllowed);
        }
        let task = self.shared.find(pid);
        let alive = task.filter(|it| it.state.snapshot().state() != ProcessState::Complete);
        alive.ok_or(InterventionError::NotFound(pid))
    }
}
