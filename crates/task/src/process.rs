//! A task as a process.
//!
//! **Problem.** A future may refer to itself, so it must not move after its first poll. Schedulers
//! may move processes.
//!
//! **Protocol.** The process leaves this module in a box, as a `dyn Process`, or as an
//! `Unstarted::pinned`, which nothing moves after its first step. Its type is private to this
//! module, so no other code can move the process out. So the process stays in its place from its
//! first poll to its drop. The box is the only allocation of a task. Other code may move a
//! [`Body`], which is not a process yet.

use crate::cx::Cx;
use crate::error::is_cancelled;
use crate::name;
use crate::step::{self, BUDGET, Step, Then, first_turn};
use crate::waits::Waits;
use ganger_proc_api::internal::RunnerOutput as _;
use ganger_proc_api::{
    BoxError, Context, Events, Payloads, Process, StepOutput, StepResult, Symbol,
};
#[cfg(feature = "sched")]
use ganger_sched::Startable;
#[cfg(feature = "sched")]
use ganger_sched::internal::{ContextInternals as _, LentWaker, TaskContext, Unstarted};
use std::any::type_name;
use std::marker::PhantomData;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{self, Poll, Waker};

/// The entry point of tasks.
pub(crate) const METHOD: Symbol = Symbol::new("task");

/// Boxes an async function as a process: for callees that take a `Box<dyn Process>`, such as a
/// factory of an upgrade. `spawn` takes the function itself.
///
/// `body` is called in the process's `init`, and its future is polled in steps. `Ok`, with a value
/// of any type, ends the process with [`ExitReason::Done`](ganger_proc_api::ExitReason::Done), an
/// error with `Failed`, and the error of a cancelled wait with `Cancelled`.
///
/// ```
/// use ganger_proc_api::{BoxError, Process};
/// use ganger_task::{Cx, process};
///
/// let sum: Box<dyn Process> = process(async |cx: Cx<u64>| {
///     let mut sum = 0;
///     while let Some(number) = cx.recv().await {
///         sum += number;
///     }
///     Ok(sum)
/// });
/// ```
pub fn process<M, R, F, Fut>(body: F) -> Box<dyn Process>
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnOnce(Cx<M>) -> Fut + Send + 'static,
    Fut: Future<Output = Result<R, BoxError>> + Send + 'static,
{
    Box::new(Task::new(body))
}

/// An async function before its start: a scheduler may allocate the box in the thread of the task.
#[cfg(feature = "sched")]
#[doc(hidden)]
#[derive(Debug)]
pub struct Body<M, F, Fut> {
    function: F,
    types: PhantomData<fn(M) -> Fut>,
}

#[cfg(feature = "sched")]
impl<M: 'static> TaskContext for Cx<M> {
    type Message = M;
    type Body<F, Fut> = Body<M, F, Fut>;

    #[inline]
    fn body<F, Fut>(function: F) -> Body<M, F, Fut> {
        let types = PhantomData;
        Body { function, types }
    }
}

#[cfg(feature = "sched")]
impl<M, F, Fut> Startable for Body<M, F, Fut>
where
    M: Send + 'static,
    F: FnOnce(Cx<M>) -> Fut + Send + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: TaskOutput,
{
    const METHOD: Symbol = METHOD;

    #[inline]
    fn unstarted(self) -> Unstarted {
        Unstarted::pinned(Task::new(self.function))
    }

    fn type_name() -> &'static str {
        name::function(type_name::<F>(), type_name::<Fut>())
    }
}

/// The result of an async function as a process: `Ok` with a value of any `Send` type, or an error
/// in a box.
#[diagnostic::on_unimplemented(
    message = "an async function that is started as a process can't return `{Self}`",
    label = "its result must be a `Result<T, BoxError>`",
    note = "end the function with `Ok(value)`, and with `Ok(())` if it has no result",
    note = "`?` and `error.into()` make a `BoxError` of an error of another type",
    note = "a function that never returns says what it would return: `-> Result<(), BoxError>`"
)]
pub trait TaskOutput {
    #[doc(hidden)]
    type Value: Send + 'static;

    #[doc(hidden)]
    fn result(self) -> Result<Self::Value, BoxError>;
}

impl<R: Send + 'static> TaskOutput for Result<R, BoxError> {
    type Value = R;

    #[inline]
    fn result(self) -> Self {
        self
    }
}

/// The id of the next task of this program.
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Task<M, F, Fut> {
    state: State<F, Fut>,
    /// The task's id, for its waits.
    id: u64,
    waits: Waits,
    takes: PhantomData<fn(&M)>,
}

impl<M, F, Fut> Task<M, F, Fut> {
    fn new(body: F) -> Self {
        Self {
            state: State::New(body),
            // Ordering: Relaxed: each id differs, and nothing depends on the order.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            waits: Waits::default(),
            takes: PhantomData,
        }
    }
}

/// The process's own waker, in a step.
enum OwnWaker<'a> {
    #[cfg(feature = "sched")]
    Lent(LentWaker<'a>),
    Kept(Waker, PhantomData<&'a Context>),
}

impl<'a> OwnWaker<'a> {
    #[inline]
    fn of(ctx: &'a Context) -> Self {
        #[cfg(feature = "sched")]
        if let Some(waker) = ctx.lent_waker() {
            return Self::Lent(waker);
        }
        Self::Kept(ctx.waker(), PhantomData)
    }
}

impl Deref for OwnWaker<'_> {
    type Target = Waker;

    #[inline]
    fn deref(&self) -> &Waker {
        match self {
            #[cfg(feature = "sched")]
            Self::Lent(waker) => waker,
            Self::Kept(waker, _) => waker,
        }
    }
}

enum State<F, Fut> {
    New(F),
    /// `init` is calling the function, or its call has failed.
    Begun,
    /// The future, pinned from its first poll on.
    Runs(Fut),
}

impl<M, F, Fut> Process for Task<M, F, Fut>
where
    M: Send + 'static,
    F: FnOnce(Cx<M>) -> Fut + Send + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: TaskOutput,
{
    fn init(&mut self, ctx: &Context, _: &str, _: Payloads) -> Result<(), BoxError> {
        if !matches!(self.state, State::New(_)) {
            return Err("a task starts once".into());
        }
        ctx.accept_only::<M>();
        // The replaced value is a function, and has not been polled.
        if let State::New(body) = std::mem::replace(&mut self.state, State::Begun) {
            self.state = State::Runs(body(Cx::new(ctx.clone(), self.id)));
        }
        Ok(())
    }

    fn step(&mut self, ctx: &Context, events: &mut Events<'_>, out: &mut StepOutput) -> StepResult {
        // The waits tell the task of a cancellation, and the task ends by itself.
        out.defer_cancel();
        self.waits.begin(events);
        let State::Runs(future) = &mut self.state else {
            return Err("a task steps after its `init`".into());
        };
        // SAFETY: the task is in the box made by `process`, or in an `Unstarted::pinned`: from this
        // step on nothing moves the task. This module alone knows its type, and does not move the
        // future once it is here.
        let future = unsafe { Pin::new_unchecked(future) };
        let waits = &mut self.waits;
        let turn = first_turn(waits.step);
        let own = OwnWaker::of(ctx);
        let waker = &*own;
        let mut step = Step {
            task: self.id,
            events,
            out,
            waits,
            waker,
            then: Then::Wait,
            budget: BUDGET,
            turn,
            shields: 0,
        };
        let mut context = task::Context::from_waker(waker);
        let polled = step::enter(&mut step, || future.poll(&mut context));
        let then = step.then;
        waits.end(events);
        match polled.map(TaskOutput::result) {
            Poll::Pending => match then {
                Then::Wait => {}
                Then::StepAgain => out.step_again(),
                Then::YieldNow => out.yield_now(),
            },
            Poll::Ready(Ok(value)) => out.done(value),
            Poll::Ready(Err(error)) => match waits.take_cancel() {
                Some(reason) if is_cancelled(&error) => out.show_cancel(reason),
                _ => return Err(error),
            },
        }
        Ok(())
    }

    fn namer(&self) -> fn() -> &'static str {
        || name::function(type_name::<F>(), type_name::<Fut>())
    }
}
