//! The description of a child: how to make it, and how to react to its end.

mod in_place;
mod reference;

pub use self::in_place::Poison;
pub(crate) use self::in_place::{Place, Site};
pub use self::reference::ChildRef;

use self::in_place::{Incarnation, Keeping, MakeIncarnation, Note};
use crate::plan::{BackOff, Restart, Rules, ShutdownTimeout};
use ganger_proc_api::{Actor, BoxError, Process};
use ganger_sched::{IntoProcess, Startable};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// The description of a child: its name, a factory, and the reaction to its end.
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
    /// The limit of the mailbox; inside, `None` for any number of messages.
    pub(crate) mailbox_limit: Option<Option<usize>>,
    /// The factory of incarnations, for restarts in place.
    pub(crate) place: Option<MakeIncarnation>,
}

pub(crate) type Make = Arc<dyn Fn() -> Result<Box<dyn Process>, BoxError> + Send + Sync>;

/// A child: a value for [`spawn`](ganger_sched::Handle::spawn), or a `Result` with such a value: an
/// error is a failed start.
///
/// `K` tells them apart; the compiler infers it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be a child of a supervisor",
    label = "the factory has to make a child each time",
    note = "a child is an `Actor`, a `Process`, a `Box<dyn Process>`, an async function that takes \
            a `Cx` by value, or a `Result` with one of them",
    note = "of an async closure: `ChildSpec::new(name, || async |cx: Cx<M>| {{ … Ok(()) }})`"
)]
pub trait IntoChild<K> {
    #[doc(hidden)]
    fn into_boxed(self) -> Result<Box<dyn Process>, BoxError>;
}

/// Marks what `spawn` starts: see [`IntoChild`].
#[derive(Debug)]
pub struct OfKind<K>(PhantomData<fn(K)>);
/// Marks what may not have been made: see [`IntoChild`].
#[derive(Debug)]
pub struct OfResult<K>(PhantomData<fn(K)>);

impl<K, W> IntoChild<OfKind<K>> for W
where
    W: IntoProcess<K>,
    W::Process: Startable,
{
    fn into_boxed(self) -> Result<Box<dyn Process>, BoxError> {
        Ok(self.into_process().unstarted().into_box())
    }
}

impl<K, T, E> IntoChild<OfResult<K>> for Result<T, E>
where
    T: IntoChild<K>,
    E: Into<BoxError>,
{
    fn into_boxed(self) -> Result<Box<dyn Process>, BoxError> {
        self.map_err(Into::into)?.into_boxed()
    }
}

impl ChildSpec {
    /// Creates a permanent child. `make` makes its process, at the start and at each restart. An
    /// error or a panic of `make` is a failed start.
    pub fn new<K, T: IntoChild<K>>(
        name: impl Into<Arc<str>>,
        make: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(move || make().into_boxed()),
            rules: Rules::default(),
            stop: None,
            registered: None,
            mailbox_limit: None,
            place: None,
        }
    }

    /// Sets the ends after which the child is restarted.
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.rules.restart = restart;
        self
    }

    /// Has the child restarted after a failure, and not when the child is done: see
    /// [`Restart::Transient`].
    #[must_use]
    pub fn transient(self) -> Self {
        self.restart(Restart::Transient)
    }

    /// Has the child never restarted: see [`Restart::Temporary`].
    #[must_use]
    pub fn temporary(self) -> Self {
        self.restart(Restart::Temporary)
    }

    /// Sets the time for the child to finish on request. By default 5 seconds, and no limit for a
    /// supervisor.
    #[must_use]
    pub fn stop(mut self, stop: ShutdownTimeout) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Sets the time after the request to finish at which the supervisor terminates the child.
    #[must_use]
    pub fn stop_within(self, time: Duration) -> Self {
        self.stop(ShutdownTimeout::Within(time))
    }

    /// Sets the waits before restarts. By default the child is restarted at once.
    ///
    /// With short waits, the child may fail more often than the
    /// [intensity](crate::Supervisor::intensity) allows.
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

    /// Marks the child as significant: its end may end the supervisor, see
    /// [`AutoShutdown`](crate::AutoShutdown).
    #[must_use]
    pub fn significant(mut self) -> Self {
        self.rules.significant = true;
        self
    }

    /// Registers each process of the child under the child's name, from before its `init` to its
    /// end. By default the supervisor alone knows the name.
    #[must_use]
    pub fn registered(mut self) -> Self {
        self.registered = Some(Arc::clone(&self.name));
        self
    }

    /// Registers the child as [`registered`](Self::registered) does, under another name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.registered = Some(name.into());
        self
    }

    /// Sets the most messages in the child's mailbox, in place of the scheduler's limit: see
    /// [`Spawner::mailbox_limit`](ganger_sched::Spawner::mailbox_limit). From 1 up: a child with 0
    /// does not start.
    #[must_use]
    pub fn mailbox_limit(mut self, messages: usize) -> Self {
        self.mailbox_limit = Some(Some(messages));
        self
    }

    /// Gives the child's mailbox no limit, in place of the scheduler's limit.
    #[must_use]
    pub fn no_mailbox_limit(mut self) -> Self {
        self.mailbox_limit = Some(None);
        self
    }

    /// Restarts the child in place: after a failure a new incarnation takes the child's place, with
    /// the same PID and address, the mailbox with its order, names, monitors and handles, but
    /// without the events of the failing step. The registrations made by the failed incarnation go,
    /// as at an end, so that the next `init` makes them again: services, places in groups,
    /// monitors, links, exit actions. [`incarnation`](ganger_sched::ContextExt::incarnation) tells
    /// a first life from later ones. The rest of its group goes on. The restart counts for the
    /// [intensity](crate::Supervisor::intensity), and waits as [`back_off`](Self::back_off) says.
    ///
    /// After too many restarts, or after an upgrade by a step, a failure is the end of the process.
    /// A supervisor can't be restarted in place, and does not start.
    ///
    /// An actor with messages that can be cloned may try the last message again: see
    /// [`poison`](Self::poison). [`dead_letter`](Self::dead_letter) is for all messages. The
    /// callers of the questions that the failing step has taken get the cause as their answer.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// # use std::sync::Arc;
    /// use ganger_supervise::{ChildSpec, Supervisor};
    ///
    /// # let scheduler = Scheduler::builder().build()?;
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

    /// Creates a permanent actor with restarts [in place](Self::in_place), which keeps a copy of
    /// the message in hand: `poison` is the policy for a message with which the actor fails.
    pub fn poison<A: Actor<Message: Clone>>(
        name: impl Into<Arc<str>>,
        poison: Poison<A::Message>,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        Self::keeping(name, Note::copy(), poison, make)
    }

    /// Creates a permanent actor with restarts [in place](Self::in_place). Before the actor
    /// receives a message, `note` makes a note of it. When the actor fails with the message,
    /// `dead_letter` is called with the note and the cause, and should be short.
    ///
    /// For messages that can't be cloned, because they have a [`Reply`](ganger_proc_api::Reply) for
    /// example. Messages that can be cloned may be [tried again](Self::poison).
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

    /// Returns whether the child has the default time to stop, which is no limit for a supervisor.
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
