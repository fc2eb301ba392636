//! Tasks of the scheduler in `ganger-sched`.

use crate::cx::Cx;
use crate::process::pinned;
use crate::scope::METHOD;
use ganger_proc_api::{BoxError, Completer, Context, Message, Payload, SubmitError, TypedCommand};
use ganger_sched::{Address, Call, ContextExt, Handle, ProcessHandle, RegisterError, Spawner};
use std::sync::Arc;

/// What this crate adds to the handle of a scheduler.
pub trait SpawnTask {
    /// Starts an async function as a process, with what every process has: a PID, a mailbox, a
    /// handle. It is called on this thread; what it returns is polled by workers.
    ///
    /// `Ok` is the result of the process, a value of any type: see
    /// [`ExitReason::take`](ganger_proc_api::ExitReason::take). An error ends it as failed, and the
    /// error of a wait that was cancelled as cancelled.
    ///
    /// ```
    /// # use ganger_proc_api::ExitReason;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, SpawnTask};
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let hello = scheduler.spawn_task(async |cx: Cx<String>| {
    ///     let name = cx.recv().await.ok_or("cancelled")?;
    ///     Ok(format!("hello {name}"))
    /// })?;
    /// hello.send("world".to_owned())?;
    /// assert!(matches!(hello.wait(), ExitReason::Done(it) if it.as_str() == Some("hello world")));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::submit`].
    fn spawn_task<M, R, F, Fut>(&self, body: F) -> Result<ProcessHandle<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static;

    /// A question that a task answers: it starts when the question is asked. Its result or its
    /// error is the answer. It is cancelled when the answer is not wanted any longer.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, SpawnTask};
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let sum = scheduler.call_task(async |_: Cx| Ok(40 + 2));
    /// assert_eq!(sum.wait()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    fn call_task<R, F, Fut>(&self, body: F) -> Call<R>
    where
        R: Send + 'static,
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static;

    /// Registers an async function as the handler of the commands of type `C`: each is carried out
    /// by a task of its own. The task is cancelled when the answer is not wanted any longer.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, ExitReason, TypedCommand};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, SpawnTask};
    ///
    /// struct Double(u64);
    /// impl TypedCommand for Double {
    ///     type Answer = u64;
    /// }
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// scheduler.register_task(async |_: Cx, Double(number)| Ok(2 * number))?;
    /// scheduler.start()?;
    /// let task = scheduler.spawn_task(async |cx: Cx| Ok(cx.command(Double(21)).await?))?;
    /// assert!(matches!(task.wait(), ExitReason::Done(it) if it.as_u64() == Some(42)));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Handle::register_for`].
    fn register_task<C, F, Fut>(&self, handle: F) -> Result<(), RegisterError>
    where
        C: TypedCommand,
        F: Fn(Cx, C) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C::Answer, BoxError>> + Send + 'static;
}

impl SpawnTask for Handle {
    fn spawn_task<M, R, F, Fut>(&self, body: F) -> Result<ProcessHandle<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        self.spawn_boxed(pinned(body), METHOD)
    }

    fn call_task<R, F, Fut>(&self, body: F) -> Call<R>
    where
        R: Send + 'static,
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let scheduler = self.downgrade();
        let answered_in = scheduler.clone();
        let call = Call::by(move |reply| {
            let body = async move |cx: Cx| {
                answer(cx.context().clone(), reply.untyped(), body(cx)).await;
                Ok(())
            };
            let scheduler = scheduler.upgrade().ok_or("the scheduler is gone")?;
            scheduler.spawn_task(body)?;
            Ok(())
        });
        call.answered_in(&answered_in)
    }

    fn register_task<C, F, Fut>(&self, handle: F) -> Result<(), RegisterError>
    where
        C: TypedCommand,
        F: Fn(Cx, C) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<C::Answer, BoxError>> + Send + 'static,
    {
        let scheduler = self.downgrade();
        let handle = Arc::new(handle);
        self.register_for(move |command: C, completer| {
            let handle = Arc::clone(&handle);
            let completer = completer.untyped();
            let body = async move |cx: Cx| {
                answer(cx.context().clone(), completer, handle(cx, command)).await;
                Ok(())
            };
            let scheduler = scheduler.upgrade().ok_or("the scheduler is gone")?;
            scheduler.spawn_task(body)?;
            Ok(())
        })
    }
}

/// Answers with what `body` gives. When the answer is not wanted any longer, the task is cancelled.
async fn answer<T: Send + 'static, B>(ctx: Context, completer: Completer, body: B)
where
    B: Future<Output = Result<T, BoxError>>,
{
    let watch = completer.on_end(move || {
        // A task that is not found has ended.
        let _ = ctx.cancel(ctx.pid(), "the answer is not wanted any longer");
    });
    if watch.is_none() {
        return;
    }
    match body.await {
        Ok(answer) => completer.complete(Payload::any(answer)),
        Err(error) => completer.fail(error),
    }
}

/// What this crate adds to the context of a process that a scheduler of `ganger-sched` runs.
pub trait SpawnTaskExt {
    /// Starts a task in the same scheduler: see [`SpawnTask::spawn_task`]. For children that end
    /// with a task, see [`Cx::scope`].
    ///
    /// # Errors
    /// As there.
    fn spawn_task<M, R, F, Fut>(&self, body: F) -> Result<Address<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static;
}

impl SpawnTaskExt for Context {
    fn spawn_task<M, R, F, Fut>(&self, body: F) -> Result<Address<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        self.spawn_boxed(pinned(body), METHOD)
    }
}

/// Starts a task together with what is to hold from its first moment on: see [`Spawner`].
///
/// ```
/// # use ganger_proc_api::BoxError;
/// # use ganger_sched::Scheduler;
/// use ganger_task::{Cx, StartTask};
///
/// # let scheduler = Scheduler::start_default()?;
/// let echo = scheduler.named("echo").spawn_task(async |cx: Cx<u64>| {
///     Ok(cx.recv().await)
/// })?;
/// assert_eq!(scheduler.whereis("echo"), Some(echo.pid()));
/// # Ok::<(), BoxError>(())
/// ```
pub trait StartTask: Sized {
    /// What stands for a task that has been started.
    type Started<M>;

    /// Starts an async function as a process: see [`SpawnTask::spawn_task`].
    ///
    /// # Errors
    /// As for [`Spawner::spawn`](Spawner::<Handle>::spawn).
    fn spawn_task<M, R, F, Fut>(self, body: F) -> Result<Self::Started<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static;
}

impl StartTask for Spawner<Handle> {
    type Started<M> = ProcessHandle<M>;

    fn spawn_task<M, R, F, Fut>(self, body: F) -> Result<ProcessHandle<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        self.spawn_boxed(Message::kind_of::<M>(), pinned(body), METHOD)
    }
}

impl StartTask for Spawner<Context> {
    type Started<M> = Address<M>;

    fn spawn_task<M, R, F, Fut>(self, body: F) -> Result<Address<M>, SubmitError>
    where
        M: Send + 'static,
        R: Send + 'static,
        F: FnOnce(Cx<M>) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        self.spawn_boxed(Message::kind_of::<M>(), pinned(body), METHOD)
    }
}
