//! Processes with messages of a single type.

use super::output::runner::RunnerOutput as _;
use super::{Context, Process, StepOutput, StepResult};
use crate::commands::Completion;
use crate::events::{CancelReason, Event, Events, ExitNotice};
use crate::values::{BoxError, Message, Payloads, WrongType};
use std::any;
use std::fmt;
use std::marker::PhantomData;

/// A process with messages of a single type.
///
/// A scheduler calls [`receive`](Self::receive) with one message after the other, in the order of
/// their arrival, and the other methods with all other events. The process waits when no event is
/// left, unless it has said otherwise. After [`done`](StepOutput::done) it takes nothing more.
///
/// ```
/// use ganger_proc_api::{Actor, Context, StepOutput, StepResult};
///
/// enum Count {
///     Add(u64),
///     Finish,
/// }
///
/// /// Adds up what it is sent.
/// struct Total(u64);
///
/// impl Actor for Total {
///     type Message = Count;
///
///     fn receive(&mut self, _: &Context, message: Count, out: &mut StepOutput) -> StepResult {
///         match message {
///             Count::Add(number) => self.0 += number,
///             Count::Finish => out.done(self.0),
///         }
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an actor",
    note = "implement `Actor` for a process with messages of one type, and `Process` for a process \
            that sees each event",
    note = "`actor_fn(|ctx, message: M, out| {{ … Ok(()) }})` makes an actor of a closure"
)]
pub trait Actor: Send + 'static {
    /// The type of its messages: mostly an enum of its own.
    type Message: Send + 'static;

    /// Takes one message.
    ///
    /// # Errors
    /// An error ends the process with [`ExitReason::Failed`](crate::ExitReason::Failed).
    fn receive(
        &mut self,
        ctx: &Context,
        message: Self::Message,
        out: &mut StepOutput,
    ) -> StepResult;

    /// Prepares the process, on the thread that starts it.
    ///
    /// The process may start other processes, up to a depth: see [`Process::init`].
    ///
    /// # Errors
    /// An error keeps the process from starting, and goes to the starter.
    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let _ = ctx;
        Ok(())
    }

    /// Takes the first step: for requests, and for work that takes longer than the starter should
    /// wait. The scheduler calls it before all other methods, also before a message that has
    /// arrived meanwhile. By default, does nothing.
    ///
    /// ```
    /// use ganger_proc_api::{Actor, Completion, Context, StepOutput, StepResult, TypedCommand};
    ///
    /// struct Load;
    /// impl TypedCommand for Load {
    ///     type Answer = u64;
    /// }
    ///
    /// #[derive(Default)]
    /// struct Total(u64);
    ///
    /// impl Actor for Total {
    ///     type Message = u64;
    ///
    ///     fn started(&mut self, _: &Context, out: &mut StepOutput) -> StepResult {
    ///         out.ask(Load, 1);
    ///         Ok(())
    ///     }
    ///
    ///     fn completed(&mut self, _: &Context, it: Completion, _: &mut StepOutput) -> StepResult {
    ///         self.0 += it.take::<u64>()?;
    ///         Ok(())
    ///     }
    ///
    ///     fn receive(&mut self, _: &Context, number: u64, _: &mut StepOutput) -> StepResult {
    ///         self.0 += number;
    ///         Ok(())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, out);
        Ok(())
    }

    /// Takes the answer to a command of the process. By default, drops the answer, and reports an
    /// error: schedulers write a line for it.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    fn completed(
        &mut self,
        ctx: &Context,
        completion: Completion,
        out: &mut StepOutput,
    ) -> StepResult {
        let _ = out;
        if let Err(error) = &completion.result {
            ctx.leaves_answer(completion.tag, error);
        }
        Ok(())
    }

    /// Takes the notice that a [monitored](Context::monitor) process has ended. By default, drops
    /// the notice. A notice overtakes messages, also the last messages of the ended process, unless
    /// the monitor has chosen otherwise.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    fn exited(&mut self, ctx: &Context, notice: ExitNotice, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, notice, out);
        Ok(())
    }

    /// Takes a request to finish. The process ends after this call, unless it [defers the
    /// cancellation](StepOutput::defer_cancel) and finishes later by itself.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    fn cancelled(
        &mut self,
        ctx: &Context,
        reason: CancelReason,
        out: &mut StepOutput,
    ) -> StepResult {
        let _ = (ctx, reason, out);
        Ok(())
    }

    /// Takes a message of another type. Such a message comes from the time before this process took
    /// the place of another process, or before its `init`; later, the send is refused. By default,
    /// drops the message.
    ///
    /// # Errors
    /// The errors of [`receive`](Self::receive).
    fn mistaken(&mut self, ctx: &Context, error: WrongType, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, error, out);
        Ok(())
    }

    /// Returns the state of the actor, as an operator sees it: see [`Process::inspect`].
    fn inspect(&self) -> Option<String> {
        None
    }

    /// Releases what the process holds: see [`Process::close`].
    fn close(&mut self) {}
}

/// Calls a closure with each message: see [`actor_fn`].
pub struct ActorFn<M, F> {
    receive: F,
    takes: PhantomData<fn(M)>,
}

/// Makes an actor of a closure that takes the arguments of [`Actor::receive`]. The other methods
/// keep their defaults: for answers and notices implement [`Actor`].
///
/// ```
/// use ganger_proc_api::{Actor, actor_fn};
///
/// fn is_actor<A: Actor<Message = u64>>(_: A) {}
///
/// let mut sum = 0;
/// is_actor(actor_fn(move |_, number: u64, out| {
///     sum += number;
///     if sum >= 100 {
///         out.done(sum);
///     }
///     Ok(())
/// }));
/// ```
pub fn actor_fn<M, F>(receive: F) -> ActorFn<M, F>
where
    M: Send + 'static,
    F: FnMut(&Context, M, &mut StepOutput) -> StepResult + Send + 'static,
{
    let takes = PhantomData;
    ActorFn { receive, takes }
}

impl<M, F> Actor for ActorFn<M, F>
where
    M: Send + 'static,
    F: FnMut(&Context, M, &mut StepOutput) -> StepResult + Send + 'static,
{
    type Message = M;

    #[inline]
    fn receive(&mut self, ctx: &Context, message: M, out: &mut StepOutput) -> StepResult {
        (self.receive)(ctx, message, out)
    }
}

impl<M, F> fmt::Debug for ActorFn<M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ActorFn(..)")
    }
}

/// An [`Actor`] as a [`Process`]: for calls with a process, such as an upgrade.
#[derive(Debug, Default, Clone)]
pub struct ActorProcess<A> {
    actor: A,
    is_started: bool,
}

impl<A: Actor> ActorProcess<A> {
    /// Makes a process of the actor.
    #[inline]
    pub fn new(actor: A) -> Self {
        let is_started = false;
        Self { actor, is_started }
    }

    #[inline]
    fn take(&mut self, ctx: &Context, message: Message, out: &mut StepOutput) -> StepResult {
        match message.take() {
            Ok(message) => self.actor.receive(ctx, message, out),
            Err(error) => self.actor.mistaken(ctx, error, out),
        }
    }
}

impl<A: Actor> Process for ActorProcess<A> {
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        ctx.accept_only::<A::Message>();
        self.actor.init(ctx)
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        if !self.is_started {
            self.is_started = true;
            self.actor.started(ctx, out)?;
        }
        while !out.is_final() {
            if let Some(message) = events.next_value() {
                self.actor.receive(ctx, message, out)?;
                continue;
            }
            let Some(event) = events.next() else { break };
            match event {
                Event::Message(message) => self.take(ctx, message, out)?,
                Event::Completion(completion) => self.actor.completed(ctx, completion, out)?,
                Event::Cancel(reason) => self.actor.cancelled(ctx, reason, out)?,
                Event::Control(message) => self.take(ctx, *message, out)?,
                Event::Exit(notice) => self.actor.exited(ctx, *notice, out)?,
            }
        }
        Ok(())
    }

    fn inspect(&self) -> Option<String> {
        self.actor.inspect()
    }

    fn close(&mut self) {
        self.actor.close();
    }

    fn namer(&self) -> fn() -> &'static str {
        any::type_name::<A>
    }
}
