//! What a process may ask of the scheduler that runs it.

use crate::backend::{ContextBackend, Detached};
use crate::{
    CancelReason, CancelToken, MonitorError, NodeName, NotFound, Package, Payloads, Pid, Process,
    RegisterNameError, SendError, SubmitError, Symbol, Tag,
};
use std::fmt;
use std::sync::Arc;

/// A process's own view of the scheduler: given to [`Process::init`], cloned and kept by processes
/// that need it in their steps.
///
/// ```
/// use ganger_proc_api::{BoxError, Events, Payloads, Pid, Process, ProcessContext, StepOutput};
///
/// struct Greeter {
///     ctx: Option<ProcessContext>,
///     friend: Pid,
/// }
///
/// impl Process for Greeter {
///     fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
///         self.ctx = Some(ctx.clone());
///         Ok(())
///     }
///
///     fn step(&mut self, _: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
///         if let Some(ctx) = &self.ctx {
///             ctx.send(self.friend, "greeting", "hello")?;
///         }
///         out.done(());
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct ProcessContext {
    backend: Arc<dyn ContextBackend>,
}

impl ProcessContext {
    /// A context that is served by `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// A context of no scheduler, for unit tests of processes: every send is answered with
    /// [`SendErrorKind::HostNotFound`](crate::SendErrorKind::HostNotFound), every submit with
    /// [`SubmitErrorKind::Stopping`](crate::SubmitErrorKind::Stopping), every monitor with [`MonitorError`]; nobody else is
    /// there, and there are no names.
    #[must_use]
    pub fn detached(pid: Pid) -> Self {
        Self::new(Arc::new(Detached(pid)))
    }

    /// The process's own PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.backend.pid()
    }

    /// The name of the node that the process is on, if it has one: for PIDs that other nodes are to use.
    ///
    /// ```
    /// # use ganger_proc_api::{Pid, ProcessContext};
    /// # let context = ProcessContext::detached("{main|7}".parse().unwrap());
    /// let for_others: Pid = context.pid().with_node(context.node_name());
    /// ```
    #[must_use]
    pub fn node_name(&self) -> Option<NodeName> {
        self.backend.node_name()
    }

    /// Sends a message by PID, with this process as its source. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the package inside, when nobody took it.
    pub fn send(
        &self,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl Into<Payloads>,
    ) -> Result<(), SendError> {
        self.send_package(Package::new(self.pid(), target, topic, payloads))
    }

    /// Sends a package as it is, whatever its source. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the package inside, when nobody took it.
    pub fn send_package(&self, package: Package) -> Result<(), SendError> {
        self.backend.send(package)
    }

    /// Sends a control message by PID, with this process as its source. Never blocks.
    ///
    /// The target gets it as [`Event::Control`](crate::Event::Control), before the messages and completions
    /// that wait in its mailbox, and behind earlier control messages and cancellations. A target that waits
    /// runs before other processes that are ready. On its way to another host it may become an ordinary
    /// message, where whoever passes it on does not tell the two apart.
    ///
    /// # Errors
    /// [`SendError`], with the package inside, when nobody took it.
    pub fn send_control(
        &self,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl Into<Payloads>,
    ) -> Result<(), SendError> {
        let package = Package::new(self.pid(), target, topic, payloads);
        self.backend.send_control(package)
    }

    /// Submits another process to the same scheduler. Its `init` runs before this returns.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside where it was refused.
    pub fn submit(
        &self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl Into<Payloads>,
    ) -> Result<Pid, SubmitError> {
        self.backend
            .submit(Box::new(process), method.into(), input.into())
    }

    /// As [`submit`](Self::submit), with a PID that the caller chooses, by which others find the process: one of the same
    /// scheduler, with an id below 2^32, that no live process has.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside where it was refused.
    pub fn submit_as(
        &self,
        pid: Pid,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl Into<Payloads>,
    ) -> Result<Pid, SubmitError> {
        self.backend
            .submit_as(pid, Box::new(process), method.into(), input.into())
    }

    /// Has this process told when another one of the same scheduler ends, by an [`Event::Exit`](crate::Event::Exit) with
    /// `tag`, once. Never blocks.
    ///
    /// The target is not asked, and takes no step for it. When there is no process with that PID, because it has ended, or
    /// there has never been one, or its `init` has not returned, the notice says
    /// [`ExitCause::NotFound`](crate::ExitCause::NotFound), and comes at once: so a child that a process starts in its
    /// `init` can't monitor it from there. The monitor stays until one of the two has ended; upgrades of either do not
    /// matter.
    ///
    /// The notice comes after the target is gone: its `close` has been called, its names are free, and its PID can be used
    /// again; and so can its place under a limit of processes, but perhaps with a notice that comes at once. It overtakes
    /// messages, even the target's own last ones, as control messages do; no limit of mailboxes keeps it away. Each call
    /// is a monitor of its own, with a notice of its own, whatever its tag.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     BoxError, Event, Events, Payloads, Pid, Process, ProcessContext, StepOutput,
    /// };
    ///
    /// /// Waits for the end of another process.
    /// struct Heir {
    ///     of: Pid,
    /// }
    ///
    /// impl Process for Heir {
    ///     fn init(&mut self, ctx: &ProcessContext, _: &str, _: Payloads) -> Result<(), BoxError> {
    ///         Ok(ctx.monitor(self.of, 1)?)
    ///     }
    ///
    ///     fn step(&mut self, events: &mut Events<'_>, out: &mut StepOutput) -> Result<(), BoxError> {
    ///         out.idle();
    ///         for event in events {
    ///             match event {
    ///                 Event::Exit(exit) if exit.tag == 1 => {
    ///                     out.done(exit.cause.to_string());
    ///                     return Ok(());
    ///                 }
    ///                 Event::Cancel(_) => {
    ///                     out.done("cancelled");
    ///                     return Ok(());
    ///                 }
    ///                 _ => {}
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`MonitorError`] when the PID is none of the same scheduler's: those of other hosts can't be monitored.
    pub fn monitor(&self, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        Arc::clone(&self.backend).monitor(target, tag)
    }

    /// Takes back this process's [monitors](Self::monitor) of `target` that have that tag. Does nothing when there are
    /// none. Never blocks.
    ///
    /// A notice that has been sent already comes all the same, and so does that of a target whose PID is gone and whose
    /// hooks still run; none comes of a target that ends later. O(n) for the target, in those who monitor it.
    pub fn demonitor(&self, target: Pid, tag: Tag) {
        self.backend.demonitor(target, tag);
    }

    /// Gives this process a name, by which others of the same scheduler [find](Self::whereis) it: until it has ended, or the
    /// name is taken away. It may have several, and keeps them when it is upgraded. In `init` it gets the name at once,
    /// and is found by it when it is visible. Blocks for a moment at most, for the lock under which names change.
    ///
    /// # Errors
    /// [`RegisterNameError`] when a process has that name: this one may be it.
    pub fn register_name(&self, name: &str) -> Result<(), RegisterNameError> {
        Arc::clone(&self.backend).register_name(name)
    }

    /// The process of the same scheduler that has that name: none when nobody has it. Blocks for a
    /// moment at most, for the lock of a part of the table.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.backend.whereis(name)
    }

    /// Asks another process of the same scheduler to finish: it gets a cancel event, and its context shows that it is
    /// cancelled. How and whether it finishes is up to the process. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has that PID.
    pub fn cancel(&self, target: Pid, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        self.backend.cancel(target, reason.into())
    }

    /// Lets another process of the same scheduler, or this one, take no further step; one that runs finishes first. Its
    /// exit reason is then `Terminated`, unless that last step fails or panics. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has that PID.
    pub fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        self.backend.terminate(target)
    }

    /// Whether the process has been asked to finish. Never blocks.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.backend.is_cancelled()
    }

    /// Calls `f`, which may block this thread: for a file, a lock, another program. Processes that wait are
    /// handed to another thread before that, where else the scheduler would take some milliseconds to notice;
    /// those that come later, within 2 ms.
    ///
    /// To be called from inside a step, by the process itself; elsewhere it just calls `f`. Costs a few
    /// atomic operations, and a wake-up of a thread where one is needed. When there are as many spare threads
    /// as there may be, the others wait. What the step computes after `f` still keeps a processor from others,
    /// and is reported when it takes long at a stretch. The process waits for `f` all the same; what many processes do is
    /// better done by a handler that has threads of its own.
    ///
    /// That a step keeps others waiting in `f` is no surprise, and is reported at DEBUG; of one that blocks without
    /// a word, there is a warning.
    ///
    /// # Panics
    /// When `f` does, even if the backend contains that.
    pub fn blocking<R>(&self, f: impl FnOnce() -> R) -> R {
        let mut f = Some(f);
        let mut result = None;
        self.backend.block(&mut || {
            if let Some(f) = f.take() {
                result = Some(f());
            }
        });
        match (result, f) {
            (Some(result), _) => result,
            // The backend has not called it.
            (None, Some(f)) => f(),
            (None, None) => panic!("the call has panicked, and its backend has contained that"),
        }
    }

    /// Whether the step that asks has lasted for longer than its share, 10 ms unless the scheduler was
    /// told otherwise (`Builder::chain_limit`), while other processes wait and no worker is free for them: time
    /// to return with `Continue`. Costs a call and a few loads; writes nothing.
    ///
    /// To be called from inside a step, by the process itself; elsewhere it is `false`.
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.backend.should_yield()
    }

    /// A token that shows others whether the process has been asked to finish.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::new(Arc::clone(&self.backend))
    }
}

impl fmt::Debug for ProcessContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessContext")
            .field("pid", &self.pid())
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostName, SendErrorKind};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Calls what blocks that often, and contains its panics.
    struct Calls(usize);

    impl ContextBackend for Calls {
        fn pid(&self) -> Pid {
            Pid::new(HostName::new("test").unwrap(), 1)
        }

        fn send(&self, package: Package) -> Result<(), SendError> {
            Err(SendError::new(SendErrorKind::HostNotFound, package))
        }

        fn submit(
            &self,
            process: Box<dyn Process>,
            _: Symbol,
            input: Payloads,
        ) -> Result<Pid, SubmitError> {
            drop((process, input));
            Ok(self.pid())
        }

        fn is_cancelled(&self) -> bool {
            false
        }

        fn block(&self, f: &mut dyn FnMut()) {
            for _ in 0..self.0 {
                let _ = catch_unwind(AssertUnwindSafe(&mut *f));
            }
        }
    }

    #[test]
    fn what_blocks_is_called_once_however_often_its_backend_calls_it() {
        for calls in 0..4 {
            let context = ProcessContext::new(Arc::new(Calls(calls)));
            let mut count = 0;
            let result = context.blocking(|| {
                count += 1;
                "result"
            });
            assert_eq!((result, count), ("result", 1), "{calls} calls");
        }
    }
}
