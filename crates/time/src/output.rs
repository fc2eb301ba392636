//! What this crate adds to the output of a step.

use crate::commands::{ASK_WITHIN, SLEEP, TIMER};
use ganger_proc_api::{Asked, Command, Payload, StepOutput, Tag, TypedCommand};
use ganger_sched::Instant;
use std::time::Duration;

/// What this crate adds to [`StepOutput`]: yields that complete later.
///
/// The completion carries the tag and `Payload::UNIT`. `out.cancel(tag)` takes a timer back: no
/// later step is shown its completion, even if that lies in the mailbox. A timer ends with its
/// process. Without [`Timers`](crate::Timers) in the scheduler the completion is an error.
///
/// ```
/// use ganger_proc_api::{BoxError, Event, process_fn};
/// use ganger_sched::Scheduler;
/// use ganger_time::{TimerOutput, Timers};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).start()?;
/// let begin = std::time::Instant::now();
/// let sleeper = scheduler.spawn(process_fn(|_, events, out| {
///     match events.next() {
///         None => out.sleep(Duration::from_millis(5), 1),
///         Some(Event::Completion(_)) => out.done(()),
///         Some(_) => {}
///     }
///     Ok(())
/// }))?;
/// assert!(sleeper.wait().is_done() && begin.elapsed() >= Duration::from_millis(5));
/// # Ok::<(), BoxError>(())
/// ```
pub trait TimerOutput {
    /// A yield that completes after that time, counted from the end of the step, and never before.
    /// Zero completes at once. A time that is too long for the clock is never over.
    fn sleep(&mut self, time: Duration, tag: Tag);

    /// A yield that completes at that moment, and never before. One that has passed completes at
    /// once.
    fn sleep_until(&mut self, at: Instant, tag: Tag);

    /// Asks as [`StepOutput::ask`] does, but waits no longer than that time for the answer: then
    /// the completion is [`CommandError::Timeout`](ganger_proc_api::CommandError::Timeout), and the
    /// process or the handler that is asked sees that the answer is not wanted. Nothing is left of
    /// the timer when the answer comes before.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     Actor, BoxError, CommandError, Completion, Context, Reply, StepOutput, StepResult,
    ///     actor_fn,
    /// };
    /// use ganger_sched::{Address, Scheduler};
    /// use ganger_time::{TimerOutput, Timers};
    /// use std::time::Duration;
    ///
    /// struct Asks(Address<Reply<u64>>);
    ///
    /// impl Actor for Asks {
    ///     type Message = ();
    ///
    ///     fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
    ///         out.ask_within(self.0.call(|reply| reply), Duration::from_millis(5), 1);
    ///         Ok(())
    ///     }
    ///
    ///     fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
    ///         Ok(())
    ///     }
    ///
    ///     fn completed(
    ///         &mut self,
    ///         _: &Context,
    ///         it: Completion,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         out.done(matches!(it.result, Err(CommandError::Timeout)));
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Timers::add_to(Scheduler::builder()).start()?;
    /// // It keeps the question, and never answers.
    /// let mut kept = Vec::new();
    /// let silent = scheduler.spawn_actor(actor_fn(move |_, reply, _| Ok(kept.push(reply))))?;
    /// let asks = scheduler.spawn_actor(Asks(silent.address().clone()))?;
    /// assert_eq!(asks.wait().into_result()?.as_bool(), Some(true));
    /// # Ok::<(), BoxError>(())
    /// ```
    fn ask_within<C: TypedCommand>(&mut self, command: C, time: Duration, tag: Tag) -> Asked<C>;
}

impl TimerOutput for StepOutput {
    fn sleep(&mut self, time: Duration, tag: Tag) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.yield_command(Command::new(SLEEP, nanos), tag);
    }

    fn sleep_until(&mut self, at: Instant, tag: Tag) {
        self.yield_command(Command::new(TIMER, at.as_nanos()), tag);
    }

    fn ask_within<C: TypedCommand>(&mut self, command: C, time: Duration, tag: Tag) -> Asked<C> {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let command = Payload::any(command.into_command());
        self.yield_command(Command::new(ASK_WITHIN, [nanos.into(), command]), tag);
        Asked::new(tag)
    }
}
