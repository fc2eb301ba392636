//! Handlers of typed commands.

use crate::api::handle::Handle;
use crate::handlers::commands::RegisterError;
use ganger_proc_api::{BoxError, Reply, TypedCommand, typed_handler};
use std::sync::Arc;

impl Handle {
    /// Registers a handler for the commands of type `C`. The worker of the step calls it with each
    /// command, so it must not block.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     Actor, BoxError, Completion, Context, ExitReason, StepOutput, StepResult, TypedCommand,
    /// };
    /// use ganger_sched::Scheduler;
    ///
    /// struct Double(u64);
    ///
    /// impl TypedCommand for Double {
    ///     type Answer = u64;
    /// }
    ///
    /// struct Asker;
    ///
    /// impl Actor for Asker {
    ///     type Message = u64;
    ///
    ///     fn receive(&mut self, _: &Context, number: u64, out: &mut StepOutput) -> StepResult {
    ///         out.ask(Double(number), 1);
    ///         Ok(())
    ///     }
    ///
    ///     fn completed(
    ///         &mut self,
    ///         _: &Context,
    ///         it: Completion,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         out.done(it.take::<u64>()?);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// scheduler.register_for(|Double(number), reply| {
    ///     reply.complete(2 * number);
    ///     Ok(())
    /// })?;
    /// scheduler.start()?;
    /// let asker = scheduler.spawn(Asker)?;
    /// asker.send(21)?;
    /// assert!(matches!(asker.wait(), ExitReason::Done(it) if it.as_u64() == Some(42)));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`RegisterError`], with the handler inside, when the type has a handler, or the registry is
    /// frozen because the scheduler has been started.
    pub fn register_for<C: TypedCommand>(
        &self,
        handle: impl Fn(C, Reply<C::Answer>) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let handler = Arc::new(typed_handler(handle));
        self.commands().register_for::<C>(handler)
    }
}
