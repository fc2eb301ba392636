//! What a process may ask of the scheduler that runs it.

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
    /// A context that is served by `backend`.
    #[must_use]
    pub fn new(backend: Arc<dyn ContextBackend>) -> Self {
        Self { backend }
    }

    /// A context without a scheduler, for unit tests of processes.
    ///
    /// Every send fails with [`SendErrorKind::HostNotFound`](crate::SendErrorKind::HostNotFound),
    /// every submit with [`SubmitErrorKind::Stopping`](crate::SubmitErrorKind::Stopping), every
    /// monitor with [`MonitorError`]. There are no other processes and no names.
    #[must_use]
    pub fn detached(pid: Pid) -> Self {
        Self::new(Arc::new(Detached(pid)))
    }

    /// The process's own PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.backend.pid()
    }

    /// This process takes messages of type `M` alone, until another one has begun in its place. A
    /// message of another type that is sent by PID is refused with
    /// [`SendErrorKind::WrongType`](crate::SendErrorKind::WrongType). For `init`; an
    /// [`Actor`](crate::Actor) does so by itself. Messages that have come before stay. Does nothing
    /// for [`Message`], which stands for messages of any type.
    pub fn accept_only<M: Any>(&self) {
        if let Some(kind) = Message::kind_of::<M>() {
            self.backend.accept_only(kind);
        }
    }

    /// An actor takes no answers, and this one is an error.
    #[cold]
    pub(super) fn leaves_answer(&self, tag: Tag, error: &CommandError) {
        self.backend.leaves_answer(tag, error);
    }

    /// The backend, if it is a `B`; for crates that add to a context.
    #[doc(hidden)]
    #[must_use]
    pub fn backend<B: Any + Send + Sync>(&self) -> Option<Arc<B>> {
        self.backend_ref::<B>()?;
        let backend: Arc<dyn Any + Send + Sync> = Arc::clone(&self.backend) as _;
        backend.downcast().ok()
    }

    /// As [`backend`](Self::backend), borrowed: it costs no reference.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn backend_ref<B: Any + Send + Sync>(&self) -> Option<&B> {
        downcast_ref(&*self.backend)
    }

    /// As [`backend`](Self::backend), as the pointer that `Arc::as_ptr` gives.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn backend_ptr<B: Any + Send + Sync>(&self) -> Option<*const B> {
        self.backend_ref::<B>()?;
        Some(Arc::as_ptr(&self.backend).cast())
    }

    /// The name of the node that the process is on, if the node has one. For PIDs that other nodes
    /// use.
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
    /// The target gets it as [`Event::Control`](crate::Event::Control), before the messages and
    /// completions in its mailbox, and behind earlier system events. A target that waits runs
    /// before other processes that are ready. On its way to another host it may become an ordinary
    /// message: not every receiver passes control messages on as such.
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

    /// As [`submit`](Self::submit), with a PID that the caller chooses. It is a PID of the same
    /// scheduler, with an id below 2^32, that no live process has.
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

    /// Monitors another process of the same scheduler. When the target ends, this process gets one
    /// [`Event::Exit`](crate::Event::Exit) with `tag`. Never blocks.
    ///
    /// The target takes no step for it. The monitor stays until one of the two processes has ended;
    /// an upgrade of either does not end it. When this process fails and is restarted in place, its
    /// monitors end. Each call makes a monitor of its own, with a notice of
    /// its own, even if the tags are equal.
    ///
    /// When no process has that PID, the notice comes at once and says
    /// [`ExitCause::NotFound`](crate::ExitCause::NotFound). A process has its PID from the
    /// beginning of its `init` to its own end. When the `init` of the target fails, the notice says
    /// `NotFound`, too.
    ///
    /// The notice comes after the target's `close` has returned, its names are free, and its PID
    /// can be used again. Its place under a limit of processes is free as well, but perhaps not yet
    /// when a notice comes at once. The notice overtakes messages, even the last ones that the
    /// target sent. No limit of the mailbox refuses it.
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
    /// [`MonitorError`] when the PID belongs to another host: only processes of the same scheduler
    /// can be monitored.
    pub fn monitor(&self, target: Pid, tag: Tag) -> Result<(), MonitorError> {
        Arc::clone(&self.backend).monitor(target, tag)
    }

    /// Removes this process's [monitors](Self::monitor) of `target` that have that tag. Does
    /// nothing when there are none. Never blocks.
    ///
    /// A notice that has been sent still comes. So does one if the target's PID is gone already and
    /// its hooks still run. None comes from a target that ends later. For the target it costs O(n)
    /// in its monitors.
    pub fn demonitor(&self, target: Pid, tag: Tag) {
        self.backend.demonitor(target, tag);
    }

    /// Gives this process a name, by which others of the same scheduler [find](Self::whereis) it.
    ///
    /// The process keeps the name until it ends, or until the name is taken away. It may have
    /// several names, and keeps them when it is upgraded. A name that it registers in `init` leads
    /// to it at once. Blocks briefly at most, for the lock under which names change.
    ///
    /// # Errors
    /// [`RegisterNameError`] when another process has that name. A name that this process has
    /// already stays as it is.
    pub fn register_name(&self, name: &str) -> Result<(), RegisterNameError> {
        Arc::clone(&self.backend).register_name(name)
    }

    /// The process of the same scheduler that has that name. Blocks briefly at most, for the lock
    /// of a part of the table.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.backend.whereis(name)
    }

    /// Asks another process of the same scheduler to finish. It gets a
    /// [cancel event](crate::Event::Cancel), which ends it unless it says otherwise, and its
    /// context shows that it is cancelled. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has that PID.
    pub fn cancel(&self, target: Pid, reason: impl Into<CancelReason>) -> Result<(), NotFound> {
        self.backend.cancel(target, reason.into())
    }

    /// Ends another process of the same scheduler, or this one: it takes no further step. A step
    /// that runs finishes first. The exit reason is `Terminated`, unless that last step fails or
    /// panics. Never blocks.
    ///
    /// # Errors
    /// [`NotFound`] when no live process of the scheduler has that PID.
    pub fn terminate(&self, target: Pid) -> Result<(), NotFound> {
        self.backend.terminate(target)
    }

    /// A waker of this process, for futures and for threads that have something for it.
    ///
    /// A wake causes a step, which begins after the wake and may see no events. Many wakes before
    /// that step may cause it alone. A wake while a step runs causes another one. A process may get
    /// a step without a reason, so the step looks for itself what there is to do. A wake of a
    /// process that has ended does nothing. An upgrade keeps the wakers.
    ///
    /// It is a counted reference to the process: making, cloning and dropping one allocates
    /// nothing. It keeps a few bytes of the process alive after its end. Waking never blocks.
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

    /// Whether the process has been asked to finish. Never blocks.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.backend.is_cancelled()
    }

    /// Calls `f`, which may block this thread: for a file, a lock, another program.
    ///
    /// The scheduler first hands the processes that wait for this worker to another thread. Those
    /// that arrive later get one within 2 ms. Without this call the scheduler notices a blocked
    /// step only after some milliseconds. When all spare threads are in use, processes wait.
    ///
    /// Call it from inside a step, on the step's own thread; elsewhere it just calls `f`. It costs
    /// a few atomic operations, and a wake-up of a thread where one is needed. The process itself
    /// waits for `f`. For work that many processes do, a handler with threads of its own is better.
    ///
    /// A step that keeps others waiting inside `f` is reported at the level DEBUG, one that blocks
    /// outside of `f` at the level WARN. What the step computes after `f` counts as before.
    ///
    /// # Panics
    /// When `f` does, even if the backend contains that panic.
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

    /// Whether this step should return with [`step_again`](crate::StepOutput::step_again): it has
    /// used up its share of time, while other processes wait and no worker is free for them. The
    /// share is 10 ms by default (`Builder::chain_limit`). Costs a call and a few loads, and writes
    /// nothing.
    ///
    /// Call it from inside a step, on the step's own thread; elsewhere it is `false`.
    #[must_use]
    pub fn should_yield(&self) -> bool {
        self.backend.should_yield()
    }

    /// A token that shows other threads whether the process has been asked to finish.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken::new(Arc::clone(&self.backend))
    }

    /// A future for other code that is ready when the process is asked to finish, by a cancellation
    /// or a stop, or has ended: for a server of another library that has a graceful shutdown, for
    /// example. It works on any thread, under any executor; there may be many.
    ///
    /// It sees the request, and not what the process makes of it: it is ready also while a step
    /// computes, and inside of a shield.
    pub fn cancel_signal(&self) -> CancelSignal {
        CancelSignal::new(Arc::clone(&self.backend))
    }
}

/// The process on the heap: where it is, if it is in a box.
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

    /// A backend that calls what blocks that many times, and contains its panics.
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
