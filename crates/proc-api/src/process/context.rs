//! The requests of a process to the scheduler that runs it.

use super::backend::{ContextBackend, Detached};
use super::{CancelSignal, CancelToken, NotFound, Process, RegisterNameError, SubmitError, in_box};
use crate::commands::{CommandError, Tag};
use crate::events::{CancelReason, MonitorError};
use crate::raw::downcast_ref;
use crate::values::{Envelope, IntoPayloads, Message, NodeName, Pid, SendError, Symbol};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;

/// A process's own view of its scheduler. Each call of a process gets it as an argument. A clone
/// may go to another thread.
///
/// ```
/// use ganger_proc_api::{Context, Events, Pid, Process, StepOutput, StepResult};
///
/// struct Greeter {
///     friend: Pid,
/// }
///
/// impl Process for Greeter {
///     fn step(&mut self, ctx: &Context, _: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
///         ctx.send(self.friend, "greeting", "hello")?;
///         out.done(());
///         Ok(())
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    backend: Arc<dyn ContextBackend>,
}

impl Context {
    /// Makes a context served by `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// Creates a context without a scheduler, for unit tests of processes.
    ///
    /// Every send fails with [`SendErrorKind::HostNotFound`](crate::SendErrorKind::HostNotFound),
    /// every submit with [`SubmitErrorKind::Stopping`](crate::SubmitErrorKind::Stopping), every
    /// monitor with [`MonitorError`]. Such a context knows no other processes and no names.
    #[must_use]
    pub fn detached(pid: Pid) -> Self {
        Self::new(Arc::new(Detached(pid)))
    }

    /// Returns the process's own PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.backend.pid()
    }

    /// Has this process take only messages of type `M`, until another process has begun in its
    /// place. A send by PID of a message of another type is refused with
    /// [`SendErrorKind::WrongType`](crate::SendErrorKind::WrongType). For `init`; an
    /// [`Actor`](crate::Actor) makes the call by itself. Earlier messages stay. Does nothing for
    /// [`Message`], the type of messages of any kind.
    pub fn accept_only<M: Any>(&self) {
        if let Some(kind) = Message::kind_of::<M>() {
            self.backend.accept_only(kind);
        }
    }

    /// Tells the backend of a failed command whose actor takes no answers.
    #[cold]
    pub(super) fn leaves_answer(&self, tag: Tag, error: &CommandError) {
        self.backend.leaves_answer(tag, error);
    }

    /// Returns the backend, if it is a `B`; for crates that add to a context.
    #[doc(hidden)]
    #[must_use]
    pub fn backend<B: Any + Send + Sync>(&self) -> Option<Arc<B>> {
        self.backend_ref::<B>()?;
        let backend: Arc<dyn Any + Send + Sync> = Arc::clone(&self.backend) as _;
        backend.downcast().ok()
    }

    /// Borrows the backend as [`backend`](Self::backend) returns it: this costs no reference.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn backend_ref<B: Any + Send + Sync>(&self) -> Option<&B> {
        downcast_ref(&*self.backend)
    }

    /// Returns the backend as [`backend`](Self::backend) does, as the pointer of `Arc::as_ptr`.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn backend_ptr<B: Any + Send + Sync>(&self) -> Option<*const B> {
        self.backend_ref::<B>()?;
        Some(Arc::as_ptr(&self.backend).cast())
    }

    /// Returns the name of the process's node, if the node has a name. For PIDs on their way to
    /// other nodes.
    ///
    /// ```
    /// # use ganger_proc_api::{Pid, Context};
    /// # let context = Context::detached("{main|7}".parse().unwrap());
    /// let for_others: Pid = context.pid().with_node(context.node_name());
    /// ```
    #[must_use]
    pub fn node_name(&self) -> Option<NodeName> {
        self.backend.node_name()
    }

    /// Sends a message by PID, with this process as its source. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was refused.
    pub fn send(
        &self,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Result<(), SendError> {
        self.send_envelope(Envelope::new(self.pid(), target, topic, payloads))
    }

    /// Sends an envelope as it is: its source stays. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was refused.
    pub fn send_envelope(&self, envelope: Envelope) -> Result<(), SendError> {
        self.backend.send(envelope)
    }

    /// Sends a control message by PID, with this process as its source. Never blocks.
    ///
    /// The target gets the message as [`Event::Control`](crate::Event::Control), before the
    /// messages and completions in its mailbox, and behind earlier system events. A waiting target
    /// runs before other ready processes. On its way to another host a control message may become
    /// an ordinary message: not every receiver passes control messages on as such.
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was refused.
    pub fn send_control(
        &self,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Result<(), SendError> {
        let envelope = Envelope::new(self.pid(), target, topic, payloads);
        self.backend.send_control(envelope)
    }

    /// Submits another process to the same scheduler. Its `init` runs before this returns.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside if it can be submitted again.
    pub fn submit(
        &self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<Pid, SubmitError> {
        self.backend
            .submit(to_box(process), method.into(), input.into_payloads())
    }

    /// Submits a process as [`submit`](Self::submit) does, with a PID of the caller's choice: a PID
    /// of the same scheduler, with an id below 2^32, and of no live process.
    ///
    /// # Errors
    /// [`SubmitError`], with the process inside if it can be submitted again.
    pub fn submit_as(
        &self,
        pid: Pid,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<Pid, SubmitError> {
        self.backend
            .submit_as(pid, to_box(process), method.into(), input.into_payloads())
    }

    /// Monitors another process of the same scheduler. When the target ends, this process gets an
    /// [`Event::Exit`](crate::Event::Exit) with `tag`. Never blocks.
    ///
    /// The target takes no step for it. The monitor stays until either process has ended; an
    /// upgrade of either does not end it. When this process fails and is restarted in place, its
    /// monitors end. Each call makes a monitor of its own, with a notice of its own, even if the
    /// tags are equal.
    ///
    /// When no process has this PID, the notice comes at once with the cause
    /// [`ExitCause::NotFound`](crate::ExitCause::NotFound). A process has its PID from the
    /// beginning of its `init` to its own end. When the `init` of the target fails, the cause is
    /// `NotFound`, too.
    ///
    /// The notice comes after the target's `close` has returned, its names are free, and its PID is
    /// free for another process. Its place under a limit of processes is free as well, but perhaps
    /// not yet when a notice comes at once. The notice overtakes messages, even the target's last
    /// messages. No limit of the mailbox refuses the notice.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     BoxError, Context, Event, Events, Payloads, Pid, Process, StepOutput, StepResult,
    /// };
    ///
    /// /// Waits for the end of another process.
    /// struct Heir {
    ///     of: Pid,
    /// }
    ///
    /// impl Process for Heir {
    ///     fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
    ///         Ok(ctx.monitor(self.of, 1)?)
    ///     }
    ///
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         events: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         for event in events {
    ///             if let Event::Exit(exit) = event {
    ///                 out.done(exit.cause.to_string());
    ///                 return Ok(());
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`MonitorError`] when the PID belongs to another host or node, and nothing connects the
    /// scheduler to that: see `Builder::remote` of `ganger-sched`.
    pub fn monitor(&self, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        Arc::clone(&self.backend).monitor(target, tag)
    }

    /// Removes this process's [monitors](Self::monitor) of `target` with this tag. Without such a
    /// monitor, does nothing. Never blocks.
    ///
    /// A notice on its way still comes. So does a notice from a target whose PID is gone already
    /// while its hooks still run. No notice comes from a target that ends later. O(1), amortised.
    pub fn demonitor(&self, target: Pid, tag: Tag) {
        self.backend.demonitor(target, tag);
    }

    /// Gives this process a name, by which processes of the same scheduler [find](Self::whereis)
    /// it.
    ///
    /// The process keeps the name until it ends, or until the name is taken away. A process may
    /// have several names, and keeps them when it is upgraded. A name registered in `init` leads to
    /// the process at once. Blocks at most briefly, for the lock under which names change.
    ///
    /// # Errors
    /// [`RegisterNameError`] when another process has the name. A second registration by this
    /// process changes nothing.
    pub fn register_name(&self, name: &str) -> Result<(), RegisterNameError> {
        Arc::clone(&self.backend).register_name(name)
    }

    /// Returns the process of the same scheduler with this name. Blocks at most briefly, for the
    /// lock of a part of the table.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.backend.whereis(name)
    }

    /// Asks another process of the same scheduler to finish. The target gets a [cancel
    /// event](crate::Event::Cancel), which ends it unless it says otherwise, and its context shows
    /// the cancellation. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has this PID.
    pub fn cancel(&self, target: Pid, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        self.backend.cancel(target, reason.into())
    }

    /// Ends another process of the same scheduler, or this process: the target takes no further
    /// step. A step in progress finishes first. The exit reason is `Terminated`, unless this last
    /// step fails or panics. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has this PID.
    pub fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        self.backend.terminate(target)
    }

    /// Makes a waker of this process, for futures and for threads with news for it.
    ///
    /// A wake causes a step, which begins after the wake and may see no events. Several wakes
    /// before the step may cause only this step. A wake while a step runs causes another step. A
    /// process may get a step without a reason, so the step finds its work itself. A wake after the
    /// process's end does nothing. An upgrade keeps the wakers.
    ///
    /// A waker is a counted reference to the process: making, cloning and dropping a waker
    /// allocates nothing. A waker keeps a few bytes of the process alive after its end. Waking
    /// never blocks.
    ///
    /// ```
    /// use ganger_proc_api::{Context, Events, StepOutput, StepResult};
    /// use std::future::Future;
    /// use std::pin::Pin;
    /// use std::task::{self, Poll};
    ///
    /// /// A process that is done when its future is.
    /// struct Task(Pin<Box<dyn Future<Output = u64> + Send>>);
    ///
    /// impl ganger_proc_api::Process for Task {
    ///     fn step(
    ///         &mut self,
    ///         ctx: &Context,
    ///         _: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         let waker = ctx.waker();
    ///         let polled = self.0.as_mut().poll(&mut task::Context::from_waker(&waker));
    ///         if let Poll::Ready(result) = polled {
    ///             out.done(result);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.backend).waker()
    }

    /// Returns whether the process has been asked to finish. Never blocks.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.backend.is_cancelled()
    }

    /// Calls `f`, which may block this thread: for a file, a lock, another program.
    ///
    /// The scheduler first hands the processes that wait for this worker to another thread. Later
    /// arrivals get a thread within 2 ms. Without this call the scheduler notices a blocked step
    /// only after some milliseconds. When all spare threads are in use, processes wait.
    ///
    /// Call it from inside a step, on the step's own thread; elsewhere it just calls `f`. The call
    /// costs a few atomic operations, and sometimes a wake-up of a thread. The process itself waits
    /// for `f`. For the work of many processes, a handler with threads of its own is better.
    ///
    /// A step that keeps other processes waiting inside `f` is reported at the level DEBUG, a step
    /// that blocks outside of `f` at the level WARN. Computing after `f` counts as before.
    ///
    /// # Panics
    /// When `f` panics, even if the backend contains the panic.
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
            // The backend has not called `f`.
            (None, Some(f)) => f(),
            (None, None) => {
                panic!("the call has panicked, and its backend has contained the panic")
            }
        }
    }

    /// Returns whether this step should return with [`step_again`](crate::StepOutput::step_again).
    /// The step has used up its share of time then, while other processes wait and no worker is
    /// free for them. The share is 10 ms by default (`Builder::chain_limit`). Costs a call and a
    /// few loads, and writes nothing.
    ///
    /// Call it from inside a step, on the step's own thread; elsewhere it is `false`.
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.backend.should_yield()
    }

    /// Makes a token for other threads: it shows whether the process has been asked to finish.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::new(Arc::clone(&self.backend))
    }

    /// Makes a future for other code, ready when the process is asked to finish, by a cancellation
    /// or a stop, or has ended: for the graceful shutdown of another library's server, for example.
    /// Any executor may poll the future, on any thread, and a process may have many.
    ///
    /// The future shows the request, whatever the process makes of it: it is ready also while a
    /// step computes, and inside of a shield.
    pub fn cancel_signal(&self) -> CancelSignal {
        CancelSignal::new(Arc::clone(&self.backend))
    }
}

/// Puts the process on the heap: where it is, if it is in a box.
fn to_box<P: Process>(process: P) -> Box<dyn Process> {
    in_box(process).unwrap_or_else(|process| Box::new(process))
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("pid", &self.pid())
            .field("is_cancelled", &self.is_cancelled())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{HostName, Payloads, SendErrorKind};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A backend that calls the blocking function `self.0` times, and contains its panics.
    struct Calls(usize);

    impl ContextBackend for Calls {
        fn pid(&self) -> Pid {
            Pid::new(HostName::new("test").unwrap(), 1)
        }

        fn send(&self, envelope: Envelope) -> Result<(), SendError> {
            Err(SendError::new(SendErrorKind::HostNotFound, envelope))
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
            let context = Context::new(Arc::new(Calls(calls)));
            let mut count = 0;
            let result = context.blocking(|| {
                count += 1;
                "result"
            });
            assert_eq!((result, count), ("result", 1), "{calls} calls");
        }
    }
}
