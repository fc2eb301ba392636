//! System events from crates above the scheduler to processes.

use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::api::typed::Recipient;
use crate::probe::Probe;
use crate::send::system::{SystemEvent, SystemSendError, send};
use ganger_proc_api::Pid;

impl Handle {
    /// Puts a system event to a process of this scheduler: for crates that build on the scheduler,
    /// such as links, remote monitors or timers, and not for programs. Never blocks.
    ///
    /// No limit of a mailbox refuses it. So the caller must bound its events: one for each request
    /// of the process, as with monitors. The event overtakes messages and completions, and stays
    /// behind earlier system events. A process woken by it runs before other ready processes.
    /// Nothing goes on to a router.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, Context, Event, Events, Process, StepOutput, StepResult};
    /// use ganger_proc_api::{ExitCause, ExitNotice};
    /// use ganger_sched::{Scheduler, SystemEvent};
    /// # struct Watcher;
    /// # impl Process for Watcher {
    /// #     fn step(
    /// #         &mut self, _: &Context, events: &mut Events<'_>, out: &mut StepOutput,
    /// #     ) -> StepResult {
    /// #         if events.any(|event| matches!(event, Event::Exit(_))) {
    /// #             out.done(());
    /// #         }
    /// #         Ok(())
    /// #     }
    /// # }
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let watcher = scheduler.submit(Watcher, "main", ())?;
    /// // What a session with another node has heard.
    /// let remote = "{beta@main|4294967296}".parse()?;
    /// let notice = ExitNotice::new(remote, 7, ExitCause::Done);
    /// scheduler.send_system(watcher.pid(), SystemEvent::Exit(notice))?;
    /// assert!(watcher.wait().is_done());
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`SystemSendError`], with the event inside, when no live process of this scheduler has the
    /// PID.
    pub fn send_system(&self, pid: Pid, event: SystemEvent) -> Result<(), SystemSendError> {
        let refused = match self.shared.find(pid) {
            Some(task) => send(&task, event),
            None => Err(event),
        };
        self.shared.probe.called(&self.shared, "send_system");
        refused.map_err(|event| SystemSendError::new(pid, event))
    }
}

impl Address {
    /// Sends an event as [`Handle::send_system`] does, without a look-up.
    ///
    /// # Errors
    /// [`SystemSendError`], with the event inside, when the process has ended.
    pub fn send_system(&self, event: SystemEvent) -> Result<(), SystemSendError> {
        let refused = send(&self.task, event);
        self.task.called("send_system");
        refused.map_err(|event| SystemSendError::new(self.pid(), event))
    }
}

impl<M: 'static> Recipient<M> {
    /// Sends a message that no limit refuses, for crates that build on the scheduler: see
    /// [`Handle::send_system`]. The process gets it as
    /// [`Event::Control`](ganger_proc_api::Event::Control).
    ///
    /// The caller may hold a lock, so that several processes are told in the same order. So a
    /// simulation has no others move behind this call.
    ///
    /// # Errors
    /// [`SystemSendError`], with the message inside, when the process has ended.
    pub fn send_system(&self, message: M) -> Result<(), SystemSendError> {
        let event = SystemEvent::Control((self.convert)(message));
        send(&self.task, event).map_err(|event| SystemSendError::new(self.pid(), event))
    }

    /// Returns whether the process takes nothing any more: see [`Address::is_closed`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.task.takes_nothing()
    }
}
