//! Names of processes, for callers of a handle.

use super::Handle;
use ganger_proc_api::{Pid, RegisterNameError};

impl Handle {
    /// Gives a process a name, by which [`whereis`](Self::whereis) finds the process until it has
    /// ended or the name is [taken away](Self::unregister_name).
    ///
    /// A process may have several names, and keeps them through upgrades. Blocks for at most a
    /// moment, for the lock under which names change.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, Context, Events, Process, StepOutput, StepResult};
    /// # use ganger_sched::Scheduler;
    /// # struct Logger;
    /// # impl Process for Logger {
    /// #     fn step(
    /// #         &mut self, _: &Context, _: &mut Events<'_>, out: &mut StepOutput,
    /// #     ) -> StepResult {
    /// #         out.done(());
    /// #         Ok(())
    /// #     }
    /// # }
    /// let scheduler = Scheduler::builder().build()?;
    /// let logger = scheduler.spawn(Logger)?;
    /// scheduler.register_name("logger", logger.pid())?;
    /// assert_eq!(scheduler.whereis("logger"), Some(logger.pid()));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`RegisterNameError`] when another process has the name, or no live process has the PID. A
    /// name already held by the process stays as it is.
    pub fn register_name(&self, name: &str, pid: Pid) -> Result<(), RegisterNameError> {
        self.shared.register_name_of(name, pid)
    }

    /// Takes a name away from its process, and returns the process. Blocks as
    /// [`register_name`](Self::register_name) does.
    pub fn unregister_name(&self, name: &str) -> Option<Pid> {
        self.shared.names.take(name)
    }

    /// Returns the process with this name, if any: of this scheduler, else of another that the
    /// [`Remote`](crate::Remote) knows. Blocks for at most a moment, for the lock of a part of the
    /// table.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.whereis(name)
    }

    /// Returns all names with their processes, in the order of their texts. O(n).
    #[must_use]
    pub fn names(&self) -> Vec<(Box<str>, Pid)> {
        self.shared.names.all()
    }
}
