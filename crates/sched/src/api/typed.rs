//! Processes with messages of one type: starts of them, and sends to them.

use crate::api::handle::Handle;
use crate::api::internals::ContextInternals as _;
use crate::api::into_process::{IntoProcess, Startable};
use crate::api::process_handle::{Address, ProcessHandle};
use crate::api::spawner::Spawner;
use crate::api::timers;
use crate::probe::Probe;
use crate::process::dropped;
use crate::process::exit_action::ExitAction;
use crate::process::process_box::ProcessBox;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::item::{self, Item};
use crate::send::exit_requests::{self, ExitActionError};
use crate::submit::Birth;
use ganger_mpsc::Single;
use ganger_proc_api::{
    CommandError, Context, Envelope, Event, ExitCause, Instant, IntoPayloads, Kind, Message,
    Payloads, Pid, SendError, SubmitError, SubmitErrorKind, Symbol, Tag,
};
use ganger_time::{Timer, Timers};
use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The additions of this crate to the context of a process.
///
/// For processes run by a scheduler of this crate.
pub trait ContextExt {
    /// Returns the address of this process, for messages of type `M`.
    ///
    /// # Errors
    /// [`WrongAddress`] when the process takes messages of another type, or has no scheduler.
    fn address<M: Any>(&self) -> Result<Address<M>, WrongAddress>;

    /// Starts an actor, a process or an async function in the same scheduler: see
    /// [`Handle::spawn`]. The PID is in the address.
    ///
    /// # Errors
    /// As for [`Handle::submit`].
    fn spawn<K, W>(&self, what: W) -> Result<Address<W::Message>, SubmitError>
    where
        W: IntoProcess<K>,
        W::Process: Startable;

    /// Begins to start a process in the same scheduler, with properties that hold from its first
    /// moment on.
    fn spawner(&self) -> Spawner<Context>;

    /// Begins to start a process monitored by this process: see [`Spawner`].
    fn monitored(&self, tag: Tag) -> Spawner<Context> {
        self.spawner().monitored(tag)
    }

    /// Begins to start a process with a name: see [`Spawner`].
    fn named(&self, name: impl Into<Box<str>>) -> Spawner<Context> {
        self.spawner().named(name)
    }

    /// Registers an action for the end of this process, or its restart in place: see [`ExitAction`]
    /// and [`Handle::add_exit_action`].
    ///
    /// # Errors
    /// [`ExitActionError`], with the action inside, when the process has ended, or has no
    /// scheduler.
    fn add_exit_action(&self, action: Box<dyn ExitAction>) -> Result<(), ExitActionError>;

    /// Returns the value of type `T` that this process has inherited, or has set itself.
    ///
    /// A value is known by its type, so each kind of value has a type of its own.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, process_fn};
    /// use ganger_sched::{ContextExt, Scheduler};
    ///
    /// struct Tenant(&'static str);
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let child = || process_fn(|ctx, _, out| {
    ///     let tenant = ctx.inherited::<Tenant>().ok_or("no tenant")?;
    ///     out.done(tenant.0);
    ///     Ok(())
    /// });
    /// let parent = process_fn(move |ctx, _, out| {
    ///     ctx.spawn(child())?; // is of the same tenant
    ///     ctx.spawner().with_inherited(Tenant("other")).spawn(child())?;
    ///     out.done(());
    ///     Ok(())
    /// });
    /// let parent = scheduler.spawner().with_inherited(Tenant("acme")).spawn(parent)?;
    /// assert!(parent.wait().is_done());
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// A process inherits the present values of its parent: the process whose context started it,
    /// or else the process in whose step or `init` it was started. An upgrade keeps the values.
    /// They are dropped at the end of the process, when no child has them. O(values).
    fn inherited<T: Any + Send + Sync>(&self) -> Option<Arc<T>>;

    /// Sets a value for this process, and for its later children: see
    /// [`inherited`](Self::inherited). Earlier children keep their values. Does nothing in a
    /// process without a scheduler. O(values).
    fn set_inherited<T: Any + Send + Sync>(&self, value: T);

    /// Accounts this process, and its later children, under the label: a tenant, a kind of work, a
    /// stage. A reader of an observed scheduler sees the number of processes of each label, and
    /// their use of resources. Does nothing where the scheduler is not observed.
    ///
    /// A scheduler tells 10,000 labels apart, by their first 200 bytes. Further labels are
    /// accounted together.
    fn set_label(&self, label: &str);

    /// Returns how often this process has been restarted in place: 0 in its first life. An upgrade
    /// does not count.
    fn incarnation(&self) -> u64;

    /// Ends calls whose replies this step has dropped unused with `cause`, and not with
    /// [`CommandError::Dropped`]: for crates whose processes fail without ending.
    fn answer_dropped(&self, cause: &ExitCause);

    /// Returns the scheduler of the process, if any.
    fn scheduler(&self) -> Option<Handle>;

    /// Returns the address of this process, without a promised type of messages, if it has a
    /// scheduler.
    fn untyped_address(&self) -> Option<Address>;

    /// Returns the timers of the scheduler.
    ///
    /// # Panics
    /// When the process has no scheduler.
    fn timers(&self) -> &Timers;

    /// Returns the time, by the clock of the scheduler.
    ///
    /// # Panics
    /// When the process has no scheduler.
    fn now(&self) -> Instant;

    /// Sends a message after `delay`, from this process: see [`Timers::send_after`]. The message is
    /// sent also when this process has ended by then. A message to this process itself is taken
    /// back when a supervisor restarts the process in place first.
    ///
    /// # Panics
    /// When the process has no scheduler.
    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Timer;
}

impl ContextExt for Context {
    fn address<M: Any>(&self) -> Result<Address<M>, WrongAddress> {
        match self.backend::<ProcessCell>() {
            Some(task) => Address::<Message>::new(task).typed(),
            None => Err(WrongAddress::of::<M>(self.pid(), (None, false))),
        }
    }

    fn spawn<K, W>(&self, what: W) -> Result<Address<W::Message>, SubmitError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
    {
        start(self, what.into_process().unstarted().0, W::Process::METHOD)
    }

    fn spawner(&self) -> Spawner<Context> {
        Spawner::new(self.clone())
    }

    fn add_exit_action(&self, action: Box<dyn ExitAction>) -> Result<(), ExitActionError> {
        match self.backend::<ProcessCell>() {
            Some(task) => exit_requests::add_own(&task, action),
            None => Err(ExitActionError::new(self.pid(), action)),
        }
    }

    fn inherited<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.backend_ref::<ProcessCell>()?.origin.get()
    }

    fn set_inherited<T: Any + Send + Sync>(&self, value: T) {
        if let Some(task) = self.backend_ref::<ProcessCell>() {
            task.set_inherited(Arc::new(value));
        }
    }

    fn set_label(&self, label: &str) {
        if let Some(task) = self.backend::<ProcessCell>() {
            task.shared.probe.labelled(&task.probe, label);
        }
    }

    fn incarnation(&self) -> u64 {
        let task = self.backend_ref::<ProcessCell>();
        let incarnation = task.and_then(|it| it.origin.incarnation());
        incarnation.map_or(0, |it| it.number)
    }

    fn answer_dropped(&self, cause: &ExitCause) {
        dropped::answer(|| CommandError::Ended(cause.clone()));
    }

    fn untyped_address(&self) -> Option<Address> {
        self.known_address()
    }

    fn scheduler(&self) -> Option<Handle> {
        let shared = Arc::clone(&self.backend_ref::<ProcessCell>()?.shared);
        Some(Handle { shared })
    }

    fn timers(&self) -> &Timers {
        timers::of(self)
    }

    fn now(&self) -> Instant {
        self.timers().now()
    }

    fn send_after(
        &self,
        delay: Duration,
        target: Pid,
        topic: impl Into<Symbol>,
        payloads: impl IntoPayloads,
    ) -> Timer {
        let envelope = Envelope::new(self.pid(), target, topic, payloads);
        timers::send_after(self, delay, envelope)
    }
}

fn start<M>(ctx: &Context, process: ProcessBox, method: Symbol) -> Result<Address<M>, SubmitError> {
    let Some(task) = ctx.backend::<ProcessCell>() else {
        let error = SubmitError::new(SubmitErrorKind::Stopping);
        return Err(error.with_process(process.into_box(), Payloads::new()));
    };
    let birth = Birth::by(&task);
    let child = task
        .shared
        .submit(birth, process, method, Payloads::new())?;
    Ok(Address::from(&child.with_messages()))
}

/// The error for an address with another type of messages than the process takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "type mismatch: {pid} takes {}, not only messages of type {expected}{}",
    .takes.unwrap_or("those of any type"),
    if *.is_restarting { "; it restarts at the moment" } else { "" }
)]
pub struct WrongAddress {
    /// The process.
    pub pid: Pid,
    /// The requested type.
    pub expected: &'static str,
    /// The type of the process's messages; `None` for all types.
    pub takes: Option<&'static str>,
    /// Whether the process restarts in place at the moment, and took the requested type before.
    pub is_restarting: bool,
}

impl WrongAddress {
    fn of<M: Any>(pid: Pid, (takes, is_restarting): (Option<Kind>, bool)) -> Self {
        Self {
            pid,
            expected: type_name::<M>(),
            takes: takes.map(Kind::name),
            is_restarting,
        }
    }
}

impl Address {
    /// Returns the same address, for messages of type `M`.
    ///
    /// ```
    /// # use ganger_proc_api::{Actor, BoxError, Context, StepOutput, StepResult};
    /// # use ganger_sched::{Address, Scheduler};
    /// # struct Sink;
    /// # impl Actor for Sink {
    /// #     type Message = u64;
    /// #     fn receive(&mut self, _: &Context, _: u64, _: &mut StepOutput) -> StepResult {
    /// #         Ok(())
    /// #     }
    /// # }
    /// # let scheduler = Scheduler::start_default()?;
    /// let pid = scheduler.spawn(Sink)?.pid();
    /// let untyped = scheduler.address(pid).ok_or("it has ended")?;
    /// let sink: Address<u64> = untyped.clone().typed()?;
    /// sink.send(7)?;
    /// assert!(untyped.typed::<String>().is_err());
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`WrongAddress`] when the process takes messages of another type, or of all types. None for
    /// `Message`: a plain address is of any process. None for a process of another scheduler
    /// either, whose type is not known here: each send is checked there.
    pub fn typed<M: Any>(self) -> Result<Address<M>, WrongAddress> {
        if Message::kind_of::<M>().is_none() {
            return Ok(Address::new(self.task));
        }
        match self.task.accepts.kind() {
            (Some(kind), _) if kind.is::<M>() => Ok(Address::new(self.task)),
            // Its scheduler checks each message.
            _ if self.task.is_stand_in() => Ok(Address::new(self.task)),
            kind => Err(WrongAddress::of::<M>(self.task.pid(), kind)),
        }
    }
}

impl Address {
    /// Sends a message of one value, as a typed address does, if the process takes its type alone;
    /// otherwise as [`send`](Self::send). For crates that keep addresses of many types.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    #[doc(hidden)]
    #[inline]
    pub fn send_value<M: Send + 'static>(&self, value: M) -> Result<(), SendError> {
        let kind = Message::kind_of::<M>();
        let is_taken = kind.is_some() && kind == self.task.accepts.get();
        let message = in_node(&self.task, Message::of(value));
        if !is_taken && self.task.accepts.get().is_some() {
            return send_looked_at(&self.task, message);
        }
        deliver(&self.task, message)
    }
}

impl<M: Send + 'static> Address<M> {
    /// Sends a message. Never blocks: [`send_blocking`](Self::send_blocking) and
    /// [`send_async`](Self::send_async) wait for room. In the long run it needs no allocation by
    /// the program's allocator for messages of up to 256 bytes.
    ///
    /// For other ways of sending, `Message::of` makes an untyped message for
    /// [`untyped`](Self::untyped).
    ///
    /// # Errors
    /// [`SendError`], with the message inside, when the process has ended, when its mailbox is
    /// full, when other senders wait for room in it, or when the address is a plain one and the
    /// process takes messages of another type. `error.into_message` returns the message.
    // A part of the sender's own code, which so writes the message into its node and nowhere else.
    // A copy of freshly written bytes would wait for the stores.
    #[inline(always)]
    pub fn send(&self, message: M) -> Result<(), SendError> {
        let message = in_node(&self.task, Message::of(message));
        let is_plain = Message::kind_of::<M>().is_none();
        if is_plain && self.task.accepts.get().is_some() {
            return send_looked_at(&self.task, message);
        }
        deliver(&self.task, message)
    }

    /// Sends a control message, which the process gets as [`Event::Control`]. Never blocks. Takes
    /// another allocation than [`send`](Self::send) does.
    ///
    /// The message overtakes the messages and completions in the mailbox, and stays behind earlier
    /// system events: control messages, cancellations and upgrades. A process woken by it runs
    /// before other ready processes; an already queued process keeps its place.
    ///
    /// # Errors
    /// [`SendError`], with the message inside, when the process has ended, or when as many control
    /// messages wait as a mailbox may hold messages. Ordinary messages do not count here.
    pub fn send_control(&self, message: M) -> Result<(), SendError> {
        let delivered = self.task.deliver_control(Message::of(message));
        self.task.called("send_control");
        delivered.map_err(|(kind, message)| SendError::new(kind, message.to(self.task.target())))
    }

    /// Returns an address for senders that know a single kind of message, from which the process
    /// makes its own: mostly for answers.
    ///
    /// ```
    /// use ganger_proc_api::{Actor, BoxError, Context, ExitReason, StepOutput, StepResult};
    /// use ganger_sched::{Recipient, Scheduler};
    ///
    /// /// Sends each number on, doubled.
    /// struct Doubler(Recipient<u64>);
    ///
    /// impl Actor for Doubler {
    ///     type Message = u64;
    ///
    ///     fn receive(&mut self, _: &Context, number: u64, out: &mut StepOutput) -> StepResult {
    ///         self.0.send(2 * number)?;
    ///         out.done(());
    ///         Ok(())
    ///     }
    /// }
    ///
    /// enum Event {
    ///     Number(u64),
    /// }
    ///
    /// impl From<u64> for Event {
    ///     fn from(number: u64) -> Self {
    ///         Self::Number(number)
    ///     }
    /// }
    ///
    /// struct Main;
    ///
    /// impl Actor for Main {
    ///     type Message = Event;
    ///
    ///     fn receive(&mut self, _: &Context, event: Event, out: &mut StepOutput) -> StepResult {
    ///         let Event::Number(number) = event;
    ///         out.done(number);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let main = scheduler.spawn(Main)?;
    /// scheduler.spawn(Doubler(main.address().recipient()))?.send(21)?;
    /// assert!(matches!(main.wait(), ExitReason::Done(it) if it.as_u64() == Some(42)));
    /// # Ok::<(), BoxError>(())
    /// ```
    #[must_use]
    pub fn recipient<N: 'static>(&self) -> Recipient<N>
    where
        M: From<N>,
    {
        Recipient {
            task: Arc::clone(&self.task),
            convert: |message| Message::of(M::from(message)),
        }
    }
}

impl<M: Send + 'static> ProcessHandle<M> {
    /// Sends a message. Never blocks.
    ///
    /// # Errors
    /// As [`Address::send`].
    #[inline]
    pub fn send(&self, message: M) -> Result<(), SendError> {
        self.address().send(message)
    }

    /// Sends a control message. Never blocks.
    ///
    /// # Errors
    /// As [`Address::send_control`].
    pub fn send_control(&self, message: M) -> Result<(), SendError> {
        self.address().send_control(message)
    }
}

/// Sends values of type `M` to a process that makes its own messages from them: see
/// [`Address::recipient`]. Cloning it is cheap.
pub struct Recipient<M> {
    pub(super) task: Task,
    pub(super) convert: fn(M) -> Message,
}

impl<M: 'static> Recipient<M> {
    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.target()
    }

    /// Returns the address of the process, without a promised type of messages.
    #[must_use]
    pub fn untyped(&self) -> Address {
        Address::new(Arc::clone(&self.task))
    }

    /// Sends a message. Never blocks.
    ///
    /// # Errors
    /// [`SendError`], as for [`Address::send`]. The message inside is of the process's own type.
    #[inline]
    pub fn send(&self, message: M) -> Result<(), SendError> {
        deliver(&self.task, in_node(&self.task, (self.convert)(message)))
    }
}

impl<M> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        Self {
            task: Arc::clone(&self.task),
            convert: self.convert,
        }
    }
}

impl<M> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.task.target();
        f.debug_tuple("Recipient").field(&pid).finish()
    }
}

/// Returns the message in a node of the process's mailbox.
#[inline(always)]
pub(crate) fn in_node(task: &Task, message: Message) -> Single<Item> {
    task.state.single(Item::Event(Event::Message(message)))
}

/// Delivers a message of the type that the process takes.
#[inline]
pub(crate) fn deliver(task: &Task, message: Single<Item>) -> Result<(), SendError> {
    let sent = task.send(message);
    task.called("send");
    sent.map_err(|(kind, message)| item::refused(kind, message, &task.target()))
}

/// Sends as [`deliver`] does, where the type counts.
#[cold]
#[inline(never)]
fn send_looked_at(task: &Task, message: Single<Item>) -> Result<(), SendError> {
    let refuses = item::message(&message).and_then(|it| task.accepts.refuses(it));
    match refuses {
        Some(kind) => Err(item::refused(kind, message, &task.pid())),
        None => deliver(task, message),
    }
}
