//! Tasks that answer, in the scheduler of `ganger-sched`.

use crate::cx::Cx;
use ganger_proc_api::{BoxError, Completer, Context, Payload, Reply, TypedCommand};
use ganger_sched::{Call, Handle, RegisterError, WeakHandle};
use std::sync::Arc;

/// Tasks that answer questions and commands: an extension of a scheduler's handle.
/// [`Handle::spawn`] starts any other task.
pub trait TaskExt {
    /// Asks a task: the task starts when the question is asked. Its result or error is the answer.
    /// Dropping the wait cancels the task.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, TaskExt};
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

    /// Registers an async function as the handler of the commands of type `C`: each command runs in
    /// a task of its own. Dropping the wait cancels the task.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, ExitReason, TypedCommand};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::{Cx, TaskExt};
    ///
    /// struct Double(u64);
    /// impl TypedCommand for Double {
    ///     type Answer = u64;
    /// }
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// scheduler.register_task(async |_: Cx, Double(number)| Ok(2 * number))?;
    /// scheduler.start()?;
    /// let task = scheduler.spawn(async |cx: Cx| Ok(cx.command(Double(21)).await?))?;
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

impl TaskExt for Handle {
    fn call_task<R, F, Fut>(&self, body: F) -> Call<R>
    where
        R: Send + 'static,
        F: FnOnce(Cx) -> Fut + Send + 'static,
        Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
    {
        let ask = move |scheduler: WeakHandle, reply: Reply<R>| {
            let body = async move |cx: Cx| {
                answer(cx.context().clone(), reply.untyped(), body(cx)).await;
                Ok(())
            };
            let scheduler = scheduler.upgrade().ok_or("the scheduler is gone")?;
            scheduler.spawn(body)?;
            Ok(())
        };
        Call::by_inside(self.downgrade(), |it| Some(it), ask)
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
            scheduler.spawn(body)?;
            Ok(())
        })
    }
}

/// Answers with the result of `body`. Dropping the wait cancels the task.
async fn answer<T: Send + 'static, B>(ctx: Context, completer: Completer, body: B)
where
    B: Future<Output = Result<T, BoxError>>,
{
    let watch = completer.on_end(move || {
        // An ended task is not found.
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
