//! What a user says of a child: how it is made, and what is to happen when it ends.

mod in_place;
mod reference;

pub use self::in_place::Poison;
pub(crate) use self::in_place::{Place, Site};
pub use self::reference::ChildRef;

use self::in_place::{Incarnation, Keeping, MakeIncarnation, Note};
use crate::plan::{BackOff, Restart, Rules, ShutdownTimeout};
use ganger_proc_api::{Actor, ActorProcess, BoxError, Process};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A child of a supervisor: a name, a way to make it, and what is to happen when it ends.
///
/// ```
/// use ganger_proc_api::actor_fn;
/// use ganger_supervise::ChildSpec;
/// use std::time::Duration;
///
/// let child = ChildSpec::new("printer", || actor_fn(|_, text: String, _| Ok(println!("{text}"))))
///     .transient()
///     .stop_within(Duration::from_secs(2));
/// ```
pub struct ChildSpec {
    pub(crate) name: Arc<str>,
    pub(crate) make: Make,
    rules: Rules,
    stop: Option<ShutdownTimeout>,
    /// The name of its processes in the scheduler.
    pub(crate) registered: Option<Arc<str>>,
    /// Of its mailbox; inside, `None` for any number of messages.
    pub(crate) mailbox_limit: Option<Option<usize>>,
    /// If it is restarted in place.
    pub(crate) place: Option<MakeIncarnation>,
}

pub(crate) type Make = Arc<dyn Fn() -> Result<Box<dyn Process>, BoxError> + Send + Sync>;

/// What can be a child: a [`Process`], an [`Actor`], a process in a box (of
/// `ganger_task::process`, for instance), and a `Result` with one of them.
///
/// `Kind` tells them apart, and is found by the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a child of a supervisor",
    note = "a child is a `Process`, an `Actor`, a `Box<dyn Process>`, such as `process(async |cx: \
            Cx<M>| {{ … }})` makes of an async function, or a `Result` with one of them"
)]
pub trait IntoProcess<Kind> {
    #[doc(hidden)]
    fn into_process(self) -> Result<Box<dyn Process>, BoxError>;
}

/// What is a [`Process`]: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfProcess;
/// What is an [`Actor`]: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfActor;
/// What may not have been made: see [`IntoProcess`].
#[derive(Debug)]
pub struct OfResult<Kind>(Kind);

impl<P: Process> IntoProcess<OfProcess> for P {
    fn into_process(self) -> Result<Box<dyn Process>, BoxError> {
        let mut this = Some(self);
        let any: &mut dyn Any = &mut this;
        let boxed = any.downcast_mut();
        if let Some(process) = boxed.and_then(Option::<Box<dyn Process>>::take) {
            return Ok(process);
        }
        Ok(Box::new(this.ok_or("it is in a box")?))
    }
}

impl<A: Actor> IntoProcess<OfActor> for A {
    fn into_process(self) -> Result<Box<dyn Process>, BoxError> {
        IntoProcess::<OfProcess>::into_process(ActorProcess::new(self))
    }
}

impl<Kind, T, E> IntoProcess<OfResult<Kind>> for Result<T, E>
where
    T: IntoProcess<Kind>,
    E: Into<BoxError>,
{
    fn into_process(self) -> Result<Box<dyn Process>, BoxError> {
        self.map_err(Into::into)?.into_process()
    }
}

impl ChildSpec {
    /// A permanent child that `make` makes: at the start, and again whenever it is restarted. An
    /// error or a panic of `make` is a start that fails.
    pub fn new<Kind, T: IntoProcess<Kind>>(
        name: impl Into<Arc<str>>,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move || make().into_process()),
            rules: Rules::default(),
            stop: None,
            registered: None,
            mailbox_limit: None,
            place: None,
        }
    }

    /// When it is restarted.
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.rules.restart = restart;
        self
    }

    /// It is restarted when it fails, and not when it is done: see [`Restart::Transient`].
    #[must_use]
    pub fn transient(self) -> Self {
        self.restart(Restart::Transient)
    }

    /// It is never restarted: see [`Restart::Temporary`].
    #[must_use]
    pub fn temporary(self) -> Self {
        self.restart(Restart::Temporary)
    }

    /// How long it has to finish when it is asked to. By default 5 seconds, and for a supervisor
    /// as long as it needs.
    #[must_use]
    pub fn stop(mut self, stop: ShutdownTimeout) -> Self {
        self.stop = Some(stop);
        self
    }

    /// It is terminated when it has not finished that long after it was asked to.
    #[must_use]
    pub fn stop_within(self, time: Duration) -> Self {
        self.stop(ShutdownTimeout::Within(time))
    }

    /// How long to wait before it is restarted. By default it is restarted at once.
    ///
    /// While the waits are short, more failures may come in the time of the
    /// [intensity](crate::Supervisor::intensity) than that allows.
    ///
    /// ```
    /// use ganger_proc_api::actor_fn;
    /// use ganger_supervise::{BackOff, ChildSpec, Supervisor};
    /// use std::time::Duration;
    ///
    /// let seconds = Duration::from_secs;
    /// let connect = || actor_fn(|_, (): (), _| Err("no network".into()));
    /// // After 1, 2, 4 seconds and so on, at the most after 60, with a tenth more or less.
    /// let back_off = BackOff::from(seconds(1)).longest(seconds(60)).stable_after(seconds(10));
    /// let tree = Supervisor::one_for_one()
    ///     .intensity(10, seconds(60))
    ///     .with(ChildSpec::new("connection", connect).back_off(back_off));
    /// ```
    #[must_use]
    pub fn back_off(mut self, back_off: impl Into<BackOff>) -> Self {
        self.rules.back_off = Some(back_off.into());
        self
    }

    /// Its end may end the supervisor: see [`AutoShutdown`](crate::AutoShutdown).
    #[must_use]
    pub fn significant(mut self) -> Self {
        self.rules.significant = true;
        self
    }

    /// Each of its processes has the child's name in the scheduler, from before its `init` to its
    /// end. Without this the name is known to the supervisor alone.
    #[must_use]
    pub fn registered(mut self) -> Self {
        self.registered = Some(Arc::clone(&self.name));
        self
    }

    /// As [`registered`](Self::registered), with another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.registered = Some(name.into());
        self
    }

    /// The most messages that its mailbox may hold, in the place of the scheduler's limit: see
    /// [`Spawner::mailbox_limit`](ganger_sched::Spawner::mailbox_limit). From 1 up: with 0 it does
    /// not start.
    #[must_use]
    pub fn mailbox_limit(mut self, messages: usize) -> Self {
        self.mailbox_limit = Some(Some(messages));
        self
    }

    /// Its mailbox takes any number of messages, whatever the scheduler's limit is.
    #[must_use]
    pub fn no_mailbox_limit(mut self) -> Self {
        self.mailbox_limit = Some(None);
        self
    }

    /// When it fails, another one is made in its place: with the same PID and address, the mailbox
    /// with its order, names, monitors and handles, and without what the failing step had taken.
    /// What it has registered itself goes as at its end, so that the next `init` registers that
    /// again: functions, places in groups, monitors, links, exit actions.
    /// [`incarnation`](ganger_sched::ContextExt::incarnation) tells a first life from later ones.
    /// Others of its group are left alone. The restart counts for the
    /// [intensity](crate::Supervisor::intensity), and waits as [`back_off`](Self::back_off) says.
    ///
    /// When there were too many restarts, or a step has replaced the process by an upgrade, its
    /// failure is its end, as without this. A supervisor that is to be restarted in place does not
    /// start.
    ///
    /// An actor whose messages can be cloned may try the last message again: see
    /// [`poison`](Self::poison). [`dead_letter`](Self::dead_letter) is for others. A caller whose
    /// question the failing step had taken gets the cause as its answer.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// # use ganger_time::Timers;
    /// # use std::sync::Arc;
    /// use ganger_supervise::{ChildSpec, Supervisor};
    ///
    /// # let scheduler = Scheduler::builder().source(Arc::new(Timers::new())).build()?;
    /// # scheduler.start()?;
    /// let divide = || actor_fn(|_, by: u32, _| Ok(println!("{}", 6 / by)));
    /// let tree = Supervisor::one_for_one()
    ///     .with(ChildSpec::new("divide", divide).in_place())
    ///     .start(&scheduler)?;
    /// let divide = tree.address::<u32>("divide")?;
    /// for by in [0, 1, 3] {
    ///     divide.send(by)?; // The first one panics. The others are not lost.
    /// }
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn in_place(mut self) -> Self {
        let make = Arc::clone(&self.make);
        self.place = Some(Arc::new(move || Ok(Box::new(make()?))));
        self
    }

    /// A permanent actor that is restarted [in place](Self::in_place), and keeps a copy of the
    /// message that it receives: `poison` says what becomes of the one that it fails with.
    pub fn poison<A: Actor<Message: Clone>>(
        name: impl Into<Arc<str>>,
        poison: Poison<A::Message>,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        Self::keeping(name, Note::copy(), poison, make)
    }

    /// A permanent actor that is restarted [in place](Self::in_place). Before it receives a message
    /// it notes something of it, by `note`. When it fails with the message, `dead_letter` is
    /// called with the note and the cause. It should be short.
    ///
    /// This is for messages that can't be cloned, because they have a
    /// [`Reply`](ganger_proc_api::Reply) for instance. Others may be [tried again](Self::poison).
    ///
    /// ```
    /// use ganger_proc_api::{Reply, actor_fn};
    /// use ganger_supervise::ChildSpec;
    ///
    /// type Division = (u32, Reply<u32>);
    /// let divide = || actor_fn(|_, (by, reply): Division, _| Ok(reply.complete(100 / by)));
    /// let dead_letter = |by: u32, cause: &str| println!("division by {by}: {cause}");
    /// let child = ChildSpec::dead_letter("divide", |it: &Division| it.0, dead_letter, divide);
    /// ```
    pub fn dead_letter<A: Actor, N: Send + 'static>(
        name: impl Into<Arc<str>>,
        note: impl Fn(&A::Message) -> N + Send + Sync + 'static,
        dead_letter: impl Fn(N, &str) + Send + Sync + 'static,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let poison = Poison::skip().dead_letter(dead_letter);
        Self::keeping(name, Note::by(note), poison, make)
    }

    fn keeping<A: Actor, N: Send + 'static>(
        name: impl Into<Arc<str>>,
        note: Note<A::Message, N>,
        poison: Poison<N>,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let make = Arc::new(make);
        let incarnate = Arc::clone(&make);
        let mut child = Self::new(name, move || make());
        child.place = Some(Arc::new(move || {
            let incarnation = Keeping::new(incarnate(), note.clone(), poison.clone());
            Ok(Box::new(incarnation) as Box<dyn Incarnation>)
        }));
        child
    }

    pub(crate) fn rules(&self) -> Rules {
        Rules {
            stop: self.stop.unwrap_or_default(),
            ..self.rules
        }
    }

    /// Whether a supervisor has as long as it needs to stop.
    pub(crate) fn has_default_stop(&self) -> bool {
        self.stop.is_none()
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("name", &self.name)
            .field("rules", &self.rules())
            .finish_non_exhaustive()
    }
}
