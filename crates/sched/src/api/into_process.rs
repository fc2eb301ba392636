//! The values that can be started as processes.
//!
//! **Problem.** A single call, `spawn`, starts an actor, a process and an async function. Their
//! traits overlap for the compiler: a closure may implement any of them.
//!
//! **Rejected.** A call for each kind: a user would have to know the call for each value. A trait
//! object: each start would allocate. A bound of `Send` or of the result on the impls below: for a
//! future that is not `Send` the compiler would say that no impl matches, and not name the value to
//! blame.
//!
//! **Protocol.** Two stages.
//! 1. [`IntoProcess`] has a marker as its parameter, different for each impl and inferred by the
//!    compiler: exactly one impl matches. This stage asks for the shape alone.
//! 2. [`Startable`] asks for the rest: `Send`, `'static`, and the result of an async function. Each
//!    type from the first stage has one impl, so the compiler names the failing bound, and shows
//!    the value behind the failure.

use crate::process::process_box::Unstarted;
use ganger_proc_api::{Actor, ActorProcess, Message, Process, Symbol};
use std::any::type_name;
use std::marker::PhantomData;

/// The argument of `spawn`: an [`Actor`], a [`Process`], a process in a box,
/// [`actor_fn`](ganger_proc_api::actor_fn), [`process_fn`](ganger_proc_api::process_fn), or an
/// async function with a `Cx` (crate `ganger-task`).
///
/// `K` tells these apart; the compiler infers it. A closure passed directly needs the type of its
/// parameter: `async |cx: Cx<u64>| { .. }`.
///
/// ```
/// # use ganger_proc_api::{Actor, BoxError, Context, StepOutput, StepResult};
/// use ganger_proc_api::{Process, actor_fn, process_fn};
/// # use ganger_sched::Scheduler;
///
/// # struct Total;
/// # impl Actor for Total {
/// #     type Message = u64;
/// #     fn receive(&mut self, _: &Context, _: u64, _: &mut StepOutput) -> StepResult {
/// #         Ok(())
/// #     }
/// # }
/// # let scheduler = Scheduler::start_default()?;
/// scheduler.spawn(Total)?.send(1)?;
/// scheduler.spawn(actor_fn(|_, text: String, _| Ok(println!("{text}"))))?.send("one".into())?;
/// let step = || process_fn(|_, _, out| Ok(out.done(())));
/// scheduler.spawn(step())?;
/// let in_box: Box<dyn Process> = Box::new(step());
/// scheduler.spawn(in_box)?;
/// # Ok::<(), BoxError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be started as a process",
    label = "this is not an actor, a process or an async function of a `Cx`",
    note = "an async function takes one `Cx` by value and returns a `Result`; pass the function, \
            not its future: `async |cx: Cx<M>| {{ … Ok(value) }}`",
    note = "an actor is a type that implements `Actor`, or \
            `actor_fn(|ctx, message: M, out| {{ … Ok(()) }})`",
    note = "a process is a type that implements `Process`, a `Box<dyn Process>`, or \
            `process_fn(|ctx, events, out| {{ … Ok(()) }})`"
)]
pub trait IntoProcess<K> {
    /// The type of the process's messages. [`Message`] stands for all types.
    type Message: 'static;

    #[doc(hidden)]
    type Process;

    #[doc(hidden)]
    fn into_process(self) -> Self::Process;
}

/// Marks an [`Actor`]: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfActor;

/// Marks a [`Process`]: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfProcess;

/// Marks an async function: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfTask<C, Fut>(PhantomData<fn(C) -> Fut>);

impl<A: Actor> IntoProcess<OfActor> for A {
    type Message = A::Message;
    type Process = OwnActor<A>;

    fn into_process(self) -> OwnActor<A> {
        OwnActor(self)
    }
}

impl<P: Process> IntoProcess<OfProcess> for P {
    type Message = Message;
    type Process = OwnProcess<P>;

    fn into_process(self) -> OwnProcess<P> {
        OwnProcess(self)
    }
}

/// The parameter of an async function that is started as a process: for the crate with such
/// functions.
#[doc(hidden)]
pub trait TaskContext {
    /// The type of the process's messages.
    type Message: 'static;
    /// The process made from such a function.
    type Body<F, Fut>;

    /// Makes the process from the function.
    fn body<F, Fut>(function: F) -> Self::Body<F, Fut>;
}

impl<C, F, Fut> IntoProcess<OfTask<C, Fut>> for F
where
    C: TaskContext,
    F: FnOnce(C) -> Fut,
    Fut: Future,
{
    type Message = C::Message;
    type Process = C::Body<F, Fut>;

    fn into_process(self) -> C::Body<F, Fut> {
        C::body(self)
    }
}

/// The result of [`IntoProcess`], if it satisfies the bounds of a process: it is `Send + 'static`,
/// and an async function returns a `Result<T, BoxError>`. A user's own function that passes its
/// argument on to `spawn` has both bounds.
///
/// ```
/// use ganger_proc_api::SubmitError;
/// use ganger_sched::{Handle, IntoProcess, ProcessHandle, Startable};
///
/// fn spawn_named<K, W>(
///     scheduler: &Handle,
///     name: &str,
///     what: W,
/// ) -> Result<ProcessHandle<W::Message>, SubmitError>
/// where
///     W: IntoProcess<K>,
///     W::Process: Startable,
/// {
///     scheduler.named(name).spawn(what)
/// }
/// ```
pub trait Startable {
    #[doc(hidden)]
    const METHOD: Symbol;

    #[doc(hidden)]
    fn unstarted(self) -> Unstarted;

    /// Returns the name of the process's type.
    #[doc(hidden)]
    fn type_name() -> &'static str;
}

#[doc(hidden)]
#[derive(Debug)]
pub struct OwnActor<A>(A);

impl<A: Actor> Startable for OwnActor<A> {
    const METHOD: Symbol = Symbol::new("actor");

    fn unstarted(self) -> Unstarted {
        Unstarted::movable(ActorProcess::new(self.0))
    }

    fn type_name() -> &'static str {
        type_name::<A>()
    }
}

#[doc(hidden)]
#[derive(Debug)]
pub struct OwnProcess<P>(P);

impl<P: Process> Startable for OwnProcess<P> {
    const METHOD: Symbol = Symbol::new("main");

    fn unstarted(self) -> Unstarted {
        Unstarted::movable(self.0)
    }

    fn type_name() -> &'static str {
        type_name::<P>()
    }
}
