//! The requests of a task.

use crate::error::WaitError;
use crate::step;
#[cfg(feature = "sched")]
use crate::wait::HasPid;
use crate::wait::{
    self, AnswerWait, Cancelled, ExitWait, Join, Recv, Select, Shielded, Timeout, UntilCancelled,
    Where, YieldNow,
};
use crate::waits::Mark;
#[cfg(feature = "sched")]
use ganger_proc_api::SubmitError;
use ganger_proc_api::{
    CancelSignal, Command, CommandId, Context, Message, Payload, Pid, SendError, TypedCommand,
};
#[cfg(feature = "sched")]
use ganger_sched::internal::ContextInternals as _;
#[cfg(feature = "sched")]
use ganger_sched::{Address, Spawner};
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::ops::Deref;
use std::task::Poll;
use std::time::Duration;

/// A task's view of its process: the argument of its async function. A `Cx<M>` receives messages of
/// type `M`. A plain `Cx`, which is a `Cx<Message>`, receives any [`Message`].
///
/// A `Cx` has waits, and all methods of a [`Context`], also from extension traits: `cx.spawn(..)`,
/// `cx.named("store").spawn(..)`, `cx.lookup("store")`, `cx.whereis(..)`, `cx.cancel(..)`.
///
/// The waits work inside of the task alone, with any combinators, and panic elsewhere;
/// [`cancel_signal`](Self::cancel_signal) is for other code. Each wait is cancel-safe: a dropped
/// wait leaves no trace, and has taken nothing. A wait begins at its first poll, except
/// [`monitor`](Self::monitor).
///
/// **Cancellation.** A cancellation ends the task's present wait and each later wait:
/// [`recv`](Self::recv) with `None`, the other waits with [`WaitError::Cancelled`].
/// [`shield`](Self::shield) protects the waits inside. Other futures go on, unless
/// [`until_cancelled`](Self::until_cancelled) is around them.
///
/// **Budget.** After 256 ready waits in a step, the next wait lets other processes run first.
pub struct Cx<M = Message> {
    ctx: Context,
    /// The id of the task.
    task: u64,
    takes: PhantomData<fn(&M)>,
}

impl<M: Send + 'static> Cx<M> {
    pub(crate) fn new(ctx: Context, task: u64) -> Self {
        let takes = PhantomData;
        Self { ctx, task, takes }
    }

    /// Receives the next message; `None` after a cancellation, even if messages wait.
    ///
    /// A message of another type than `M` is dropped. Such a message must have come before the
    /// task's `init`.
    ///
    /// ```
    /// # use ganger_proc_api::ExitReason;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let sum = scheduler.spawn(async |cx: Cx<u64>| {
    ///     let mut sum = 0;
    ///     while sum < 42
    ///         && let Some(number) = cx.recv().await
    ///     {
    ///         sum += number;
    ///     }
    ///     Ok(sum)
    /// })?;
    /// sum.send(40)?;
    /// sum.send(2)?;
    /// assert!(matches!(sum.wait(), ExitReason::Done(it) if it.as_u64() == Some(42)));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    pub fn recv(&self) -> Recv<M, wait::Any> {
        Recv::new(self.task, wait::Any)
    }

    /// Receives the first message for which `wanted` holds. Other messages stay, in order. As
    /// [`recv`](Self::recv) otherwise. O(messages) at first, then O(new messages).
    ///
    /// `wanted` does not see a message that is a scalar, text or byte string by itself, unless
    /// `Payload::any` or an `Address` has made the message, or this is a plain `Cx`.
    ///
    /// ```
    /// # use ganger_proc_api::{ExitReason, Message};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let reply = scheduler.spawn(async |cx: Cx| {
    ///     let reply = cx.recv_where(|it| it.topic == "reply").await.ok_or("cancelled")?;
    ///     Ok(reply.payloads.into_first())
    /// })?;
    /// reply.send(Message::new("noise", 1))?;
    /// reply.send(Message::new("reply", 2))?;
    /// assert!(matches!(reply.wait(), ExitReason::Done(it) if it.as_u64() == Some(2)));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    pub fn recv_where<P>(&self, wanted: P) -> Recv<M, Where<P>>
    where
        M: Sync,
        P: FnMut(&M) -> bool,
    {
        Recv::new(self.task, Where::new(wanted))
    }

    /// Takes the next message, if any, also after a cancellation.
    ///
    /// # Panics
    /// Outside of the task.
    #[must_use]
    pub fn try_recv(&self) -> Option<M> {
        step::poll_with(self.task, |step| {
            let has_some = step.waits.may_have_messages();
            has_some.then(|| step.events.next_message()).flatten()
        })
    }

    /// Asks a process or a handler, by a call of `Address::call` or by any typed command, and waits
    /// for the answer. Dropping the wait cancels the question.
    ///
    /// ```
    /// # use ganger_proc_api::{ExitReason, Reply, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let answers = scheduler.spawn(actor_fn(|_, reply: Reply<u64>, _| {
    ///     reply.complete(42);
    ///     Ok(())
    /// }))?;
    /// let to = answers.address().clone();
    /// let asks = scheduler.spawn(async move |cx: Cx| {
    ///     Ok(cx.ask(to.call(|reply| reply)).await?)
    /// })?;
    /// assert!(matches!(asks.wait(), ExitReason::Done(it) if it.as_u64() == Some(42)));
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    pub fn ask<C: TypedCommand>(&self, command: C) -> AnswerWait<C::Answer> {
        AnswerWait::typed(self.task, command.into_command())
    }

    /// Asks as [`ask`](Self::ask) does, but waits at most `time` for the answer.
    ///
    /// # Errors
    /// As for `ask`, and [`WaitError::TimedOut`].
    pub async fn ask_within<C: TypedCommand>(
        &self,
        command: C,
        time: Duration,
    ) -> Result<C::Answer, WaitError> {
        self.timeout(time, self.ask(command)).await?
    }

    /// Has a typed command carried out, and waits for the answer. Dropping the wait takes the
    /// command back, as [`StepOutput::cancel`](ganger_proc_api::StepOutput::cancel) does.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, ExitReason, TypedCommand};
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// struct Double(u64);
    /// impl TypedCommand for Double {
    ///     type Answer = u64;
    /// }
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// scheduler.register_for(|Double(number), completer| {
    ///     completer.complete(2 * number);
    ///     Ok(())
    /// })?;
    /// scheduler.start()?;
    /// let eight = scheduler.spawn(async |cx: Cx| {
    ///     let four = cx.command(Double(2)).await?;
    ///     Ok(cx.command(Double(four)).await?)
    /// })?;
    /// assert!(matches!(eight.wait(), ExitReason::Done(it) if it.as_u64() == Some(8)));
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn command<C: TypedCommand>(&self, command: C) -> AnswerWait<C::Answer> {
        self.ask(command)
    }

    /// Has a command carried out, and waits for the answer. As [`command`](Self::command), without
    /// types.
    pub fn call(&self, command: Command) -> AnswerWait<Payload> {
        AnswerWait::untyped(self.task, command)
    }

    /// Waits for `duration`, never for less. The wait is the command [`CommandId::SLEEP`], which a
    /// scheduler with timers carries out.
    pub fn sleep(&self, duration: Duration) -> AnswerWait<()> {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let command = Command::new(CommandId::SLEEP, nanoseconds);
        AnswerWait::done(self.task, command)
    }

    /// Waits for the end of another process, of this node or of another. The monitor begins at
    /// once, and ends when the wait is dropped.
    ///
    /// # Panics
    /// Outside of the task.
    pub fn monitor(&self, target: Pid) -> ExitWait {
        ExitWait::begin(&self.ctx, self.task, target)
    }

    /// Starts a process, and waits for its end, atomically: the cause is never lost, however soon
    /// the process ends. `start` gets the spawner.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let parent = scheduler.spawn(async |cx: Cx| {
    ///     let child = async |_: Cx| Err::<(), _>("no luck".into());
    ///     let (_, end) = cx.monitored(|spawner| spawner.named("child").spawn(child))?;
    ///     Ok(end.await?.to_string())
    /// })?;
    /// assert_eq!(parent.wait().take::<String>()?, "failed: no luck");
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// As `start`.
    ///
    /// # Panics
    /// Outside of the task.
    #[cfg(feature = "sched")]
    pub fn monitored<T: HasPid>(
        &self,
        start: impl FnOnce(Spawner<Context>) -> Result<T, SubmitError>,
    ) -> Result<(T, ExitWait), SubmitError> {
        ExitWait::spawn(&self.ctx, self.task, start)
    }

    /// Lets the other ready processes run first.
    pub fn yield_now(&self) -> YieldNow {
        YieldNow::new(self.task)
    }

    /// Counts as a ready wait, for a loop whose own futures are always ready: after 256 ready
    /// waits, or after the step's share of time, other processes run first.
    pub async fn consume_budget(&self) {
        let mut mark = Mark::default();
        poll_fn(|context| {
            let is_late = self.ctx.should_yield();
            step::poll_with(self.task, |step| {
                if is_late {
                    step.budget = 0;
                }
                if !step.may_be_ready(&mut mark, context.waker()) {
                    return Poll::Pending;
                }
                step.spend();
                Poll::Ready(())
            })
        })
        .await;
    }

    /// Waits until the task is asked to finish.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled::new(self.task)
    }

    /// Returns a future for other code, ready after a cancellation or the end of the task. The
    /// signal works on any thread, under any executor, where [`cancelled`](Self::cancelled) panics:
    /// for a server of another library with a graceful shutdown, for example. A task may have many
    /// signals. A [`shield`](Self::shield) does not affect them.
    ///
    /// ```
    /// use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    /// use std::task::{Context, Waker};
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let task = scheduler.spawn(async |cx: Cx| {
    ///     let mut asked = cx.cancel_signal();
    ///     let other = std::thread::spawn(move || {
    ///         let mut context = Context::from_waker(Waker::noop());
    ///         while std::pin::Pin::new(&mut asked).poll(&mut context).is_pending() {
    ///             std::thread::yield_now();
    ///         }
    ///     });
    ///     cx.cancelled().await;
    ///     cx.context().blocking(|| other.join().is_ok());
    ///     Ok(())
    /// })?;
    /// scheduler.cancel(task.pid(), "enough")?;
    /// assert!(task.wait().is_done());
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    pub fn cancel_signal(&self) -> CancelSignal {
        self.ctx.cancel_signal()
    }

    /// Waits for a future of any kind, until a cancellation. After the cancellation the future is
    /// not polled, so it takes and loses no value.
    ///
    /// # Errors
    /// [`WaitError::Cancelled`] when the task is asked to finish first.
    pub fn until_cancelled<F: Future>(&self, future: F) -> UntilCancelled<F> {
        let cancelled = self.cancelled();
        UntilCancelled { future, cancelled }
    }

    /// Protects the waits inside of `future` from a cancellation, for a clean-up. The waits after
    /// `future` end at once.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, TypedCommand};
    /// # use ganger_task::Cx;
    /// # struct Save;
    /// # impl TypedCommand for Save {
    /// #     type Answer = ();
    /// # }
    /// # async fn save(cx: Cx<u64>) -> Result<(), BoxError> {
    /// while let Some(_number) = cx.recv().await { /* … */ }
    /// cx.shield(cx.command(Save)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shield<F: Future>(&self, future: F) -> Shielded<F> {
        let task = self.task;
        Shielded { future, task }
    }

    /// Waits for a future, but at most for `duration`, by a [`sleep`](Self::sleep).
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] after `duration`, `Cancelled` after a cancellation, without a
    /// further poll of the future, and the error of the sleep, if any.
    pub fn timeout<F: Future>(&self, duration: Duration, future: F) -> Timeout<F> {
        let (sleep, mark) = (self.sleep(duration), Mark::default());
        Timeout {
            future,
            sleep,
            mark,
        }
    }

    /// Waits for the first of several futures, and drops the rest: a tuple of two to four gives
    /// [`Either`](crate::Either) to [`Either4`](crate::Either4). Ready futures are the first
    /// equally often. A ready select counts as a ready wait, with any futures.
    ///
    /// Channels have a `select` of their own, which moves a single value and chooses at random. The
    /// guide page of channels compares both.
    ///
    /// ```
    /// # use ganger_proc_api::BoxError;
    /// # use std::time::Duration;
    /// use ganger_task::{Cx, Either};
    ///
    /// # async fn body(cx: Cx<u64>) -> Result<(), BoxError> {
    /// match cx.select((cx.recv(), cx.sleep(Duration::from_millis(5)))).await {
    ///     Either::A(message) => println!("{message:?}"),
    ///     Either::B(slept) => slept?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn select<S: Select>(&self, futures: S) -> S::Selecting {
        futures.select(self.task)
    }

    /// Waits for several futures: a tuple of two to four gives a tuple of their results.
    pub fn join<J: Join>(&self, futures: J) -> J::Joining {
        futures.join(self.task)
    }

    /// Returns whether the task is asked to finish.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.ctx.is_cancelled()
    }

    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.ctx.pid()
    }

    /// Sends a message of type `N` by PID. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], with the refused message inside.
    pub fn send<N: Send + 'static>(&self, target: Pid, message: N) -> Result<(), SendError> {
        let message = Message::of(message).from_pid(self.pid());
        self.ctx.send_envelope(message.to(target))
    }

    /// Returns the task's own address, for senders.
    ///
    /// ```
    /// # use ganger_proc_api::{ExitReason, actor_fn};
    /// # use ganger_sched::{ContextExt, Recipient, Scheduler};
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let task = scheduler.spawn(async |cx: Cx<u64>| {
    ///     let doubler = actor_fn(|_, to: Recipient<u64>, _| Ok(to.send(2 * 21)?));
    ///     cx.spawn(doubler)?.send(cx.address().recipient())?;
    ///     Ok(cx.recv().await.ok_or("cancelled")?)
    /// })?;
    /// assert_eq!(task.wait().take::<u64>()?, 42);
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    ///
    /// # Panics
    /// Outside of the scheduler of `ganger-sched`.
    #[cfg(feature = "sched")]
    #[must_use]
    pub fn address(&self) -> Address<M> {
        match self.ctx.known_address() {
            Some(address) => address,
            None => panic!("a task has an address where a scheduler of ganger-sched runs it"),
        }
    }

    /// Has the task take messages of type `N` alone from now on, by the returned `Cx`: for a child,
    /// which starts with a plain `Cx`.
    ///
    /// A later message of another type comes back to its sender with
    /// [`SendErrorKind::WrongType`](ganger_proc_api::SendErrorKind::WrongType).
    ///
    /// ```
    /// # use ganger_sched::Scheduler;
    /// use ganger_task::Cx;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let parent = scheduler.spawn(async |cx: Cx| {
    ///     cx.scope(async |scope| {
    ///         let child = scope.spawn(async |cx| {
    ///             let cx = cx.accept_only::<u64>();
    ///             Ok(2 * cx.recv().await.ok_or("cancelled")?)
    ///         })?;
    ///         cx.send(child.pid(), 21_u64)?;
    ///         Ok(child.await?)
    ///     })
    ///     .await
    /// })?;
    /// assert_eq!(parent.wait().take::<u64>()?, 42);
    /// # Ok::<(), ganger_proc_api::BoxError>(())
    /// ```
    #[must_use = "the result receives the messages"]
    pub fn accept_only<N: Send + 'static>(&self) -> Cx<N> {
        self.ctx.accept_only::<N>();
        Cx::new(self.ctx.clone(), self.task)
    }

    /// Returns the context of the process, whose methods a `Cx` has as well. A monitor set up by
    /// the context gives no notice: see [`monitor`](Self::monitor).
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.ctx
    }

    pub(crate) fn task(&self) -> u64 {
        self.task
    }
}

/// A task has all methods of its process's context.
impl<M> Deref for Cx<M> {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.ctx
    }
}

impl<M> Clone for Cx<M> {
    fn clone(&self) -> Self {
        Self {
            ctx: self.ctx.clone(),
            ..*self
        }
    }
}

impl<M> fmt::Debug for Cx<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cx").field(&self.ctx.pid()).finish()
    }
}
