//! Processes that take messages of one type.

use super::output::runner::RunnerOutput as _;
use super::{Context, Process, StepOutput, StepResult};
use crate::commands::Completion;
use crate::events::{CancelReason, Event, Events, ExitNotice};
use crate::values::{BoxError, Message, Payloads, WrongType};
use std::any;
use std::fmt;
use std::marker::PhantomData;

/// A process that takes messages of one type.
///
/// A scheduler calls [`receive`](Self::receive) with one message after the other, in the order of
/// their arrival, and the other methods with what else happens. The process waits when nothing is
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
    note = "implement `Actor` for a process that takes messages of one type, and `Process` for one \
            that sees each event",
    note = "of a closure, `actor_fn(|ctx, message: M, out| {{ … Ok(()) }})` makes one"
)]
pub trait Actor: Send + 'static {
    /// What it takes: mostly an enum of its own.
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
    /// It may start others, up to a depth: see [`Process::init`].
    ///
    /// # Errors
    /// An error keeps the process from starting, and goes to the starter.
    fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
        let _ = ctx;
        Ok(())
    }

    /// The first step: what takes longer than the starter should wait, or asks for something. It
    /// comes before all else, also before a message that has arrived meanwhile. By default it does
    /// nothing.
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
    /// As for [`receive`](Self::receive).
    fn started(&mut self, ctx: &Context, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, out);
        Ok(())
    }

    /// A command that the process yielded is answered. By default the answer is dropped, and one
    /// that is an error is reported: schedulers have a line for that.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
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

    /// A process that this one [monitors](Context::monitor) has ended. By default the notice is
    /// dropped. A notice overtakes messages, also those that the process has sent before its end,
    /// unless the monitor has chosen otherwise.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    fn exited(&mut self, ctx: &Context, notice: ExitNotice, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, notice, out);
        Ok(())
    }

    /// The process is asked to finish. It ends after this, unless it
    /// [defers the cancellation](StepOutput::defer_cancel) and finishes later by itself.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    fn cancelled(
        &mut self,
        ctx: &Context,
        reason: CancelReason,
        out: &mut StepOutput,
    ) -> StepResult {
        let _ = (ctx, reason, out);
        Ok(())
    }

    /// A message of another type has come all the same: before this process took the place of
    /// another one, or before its `init`. By default the message is dropped. Later ones are refused
    /// at the send.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    fn mistaken(&mut self, ctx: &Context, error: WrongType, out: &mut StepOutput) -> StepResult {
        let _ = (ctx, error, out);
        Ok(())
    }

    /// Releases what the process holds: see [`Process::close`].
    fn close(&mut self) {}
}

/// An actor that calls a closure with each message: see [`actor_fn`].
pub struct ActorFn<M, F> {
    receive: F,
    takes: PhantomData<fn(M)>,
}

/// An actor of a closure, which takes what [`Actor::receive`] takes. It has no other methods: for
/// answers and notices implement [`Actor`].
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

/// An [`Actor`] as a [`Process`]: for calls that take a process, an upgrade for instance.
#[derive(Debug, Default, Clone)]
pub struct ActorProcess<A> {
    actor: A,
    is_started: bool,
}

impl<A: Actor> ActorProcess<A> {
    /// The process that the actor is.
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

    fn close(&mut self) {
        self.actor.close();
    }

    fn namer(&self) -> fn() -> &'static str {
        any::type_name::<A>
    }
}
