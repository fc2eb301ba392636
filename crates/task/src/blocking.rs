//! Calls that block their thread, outside of the task.

use crate::cx::Cx;
use crate::error::WaitError;
use ganger_proc_api::{Actor, CommandError, Context, Payload, Reply, StepOutput, StepResult};
use ganger_sched::ContextExt;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

impl<M: Send + 'static> Cx<M> {
    /// Makes a call that blocks its thread or computes for long, in a process of its own, and waits
    /// for its result. A spare thread takes the place of the blocked worker when processes wait:
    /// `Builder::max_spares` limits the spare threads.
    ///
    /// Once begun, a call can't be cancelled: after an early end of the wait its result is dropped.
    ///
    /// ```
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let lines = scheduler.spawn(async |cx: Cx| {
    ///     let text = cx.blocking(|| std::fs::read_to_string("Cargo.toml")).await??;
    ///     Ok(text.lines().count() as u64)
    /// })?;
    /// assert!(lines.wait().into_result()?.as_u64() > Some(10));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`WaitError::Cancelled`] when the task is asked to finish, and [`WaitError::Command`] when
    /// the call panics, or the scheduler takes no more processes.
    pub async fn blocking<T, F>(&self, call: F) -> Result<T, WaitError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let wanted = Arc::new(());
        let caller = Caller {
            call: Some(call),
            wanted: Arc::downgrade(&wanted),
        };
        let caller = self.context().spawn(caller);
        let caller = caller.map_err(|it| WaitError::Command(CommandError::Failed(it.into())))?;
        let result = self.ask(caller.call(|reply| reply)).await;
        drop(wanted);
        result
    }
}

/// Makes the call.
struct Caller<F> {
    call: Option<F>,
    /// Gone with the wait for the result. A cancelled task may still wait, in a shield.
    wanted: Weak<()>,
}

impl<T, F> Actor for Caller<F>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    type Message = Reply<T>;

    fn receive(&mut self, ctx: &Context, reply: Reply<T>, out: &mut StepOutput) -> StepResult {
        if let Some(call) = self.call.take()
            && self.wanted.strong_count() > 0
        {
            let result = catch_unwind(AssertUnwindSafe(|| ctx.blocking(call)));
            let result = result.map(Payload::any).map_err(|it| text(&*it));
            reply.untyped().finish(result);
        }
        out.done(());
        Ok(())
    }
}

/// Returns the text of a panic.
fn text(panic: &(dyn Any + Send)) -> CommandError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    CommandError::Panicked(text.unwrap_or("non-string panic payload").into())
}
