//! Starts of processes with properties that hold from their first moment on.

use crate::api::handle::Handle;
use crate::api::into_process::{IntoProcess, Startable};
use crate::api::process_handle::{Address, ProcessHandle};
use crate::base::contain::contain;
use crate::limits::room::Limit;
use crate::probe::Probe;
use crate::process::origin::Value;
use crate::process::process_box::ProcessBox;
use crate::runtime::cell::{ProcessCell, Task};
use crate::runtime::shared::Shared;
use crate::submit::Birth;
use ganger_proc_api::{
    BoxError, Context, IntoPayloads, Kind, Message, Payloads, Pid, Process, SubmitError,
    SubmitErrorKind, Symbol, Tag,
};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Starts a process atomically with a monitor, names, first messages, and inherited values.
///
/// `F` is the starter. In a process, [`ContextExt::monitored`] and [`ContextExt::named`] begin a
/// spawner. Outside, [`Handle::named`] does.
///
/// ```
/// use ganger_proc_api::{
///     Actor, BoxError, Context, ExitNotice, StepOutput, StepResult, actor_fn,
/// };
/// use ganger_sched::{ContextExt, Scheduler};
///
/// /// Ends as its child does.
/// struct Parent;
///
/// impl Actor for Parent {
///     type Message = ();
///
///     fn init(&mut self, ctx: &Context) -> Result<(), BoxError> {
///         // However soon the child ends, the notice has the cause.
///         let child = actor_fn(|_, (): (), _| Err("no luck".into()));
///         let child = ctx.monitored(1).named("child").spawn(child)?;
///         Ok(child.send(())?)
///     }
///
///     fn receive(&mut self, _: &Context, (): (), _: &mut StepOutput) -> StepResult {
///         Ok(())
///     }
///
///     fn exited(&mut self, _: &Context, notice: ExitNotice, out: &mut StepOutput) -> StepResult {
///         out.done(notice.cause.to_string());
///         Ok(())
///     }
/// }
///
/// let scheduler = Scheduler::start_default()?;
/// let parent = scheduler.named("parent").spawn(Parent)?;
/// assert_eq!(parent.wait().take::<String>()?, "failed: no luck");
/// # Ok::<(), BoxError>(())
/// ```
///
/// The spawner acts when the process has its PID, and before its `init`: first messages, monitors
/// and hooks in the order of the calls, and names last. So a process found by its name has its
/// first messages already. When a name is taken or a hook fails, nothing was started: the error has
/// the reason and the process inside, and earlier acts are undone. When `init` fails, the error
/// says so, and no monitor of this spawner gives a notice.
///
/// [`ContextExt::monitored`]: crate::ContextExt::monitored
/// [`ContextExt::named`]: crate::ContextExt::named
#[must_use = "it starts nothing before a call of `spawn` or the like"]
pub struct Spawner<F> {
    from: F,
    /// The first act, mostly the only act.
    first: Option<Act>,
    others: Vec<Act>,
    names: Vec<Box<str>>,
    limit: Option<Limit>,
}

type Hook = Box<dyn FnOnce(&Address) -> Result<(), BoxError> + Send>;

/// An act before the `init`.
enum Act {
    Message(Message),
    Monitor(Task, Tag),
    Value(Value),
    Label(Box<str>),
    Hook(Hook),
}

impl Act {
    fn carry_out(self, child: &Task) -> Result<(), SubmitErrorKind> {
        let done = match self {
            Self::Monitor(watcher, tag) => {
                watcher.monitor_spawned(child, tag);
                return Ok(());
            }
            Self::Value(value) => {
                child.set_inherited(value);
                return Ok(());
            }
            Self::Label(label) => {
                child.shared.probe.labelled(&child.probe, &label);
                return Ok(());
            }
            Self::Message(message) => {
                let child: Address = Address::new(Arc::clone(child));
                child.send(message).map_err(BoxError::from)
            }
            Self::Hook(hook) => {
                let child = Address::new(Arc::clone(child));
                match contain(|| hook(&child)) {
                    Ok(done) => done,
                    Err(message) => {
                        child.task.shared.own_counters().panics.bump();
                        Err(String::from(message).into())
                    }
                }
            }
        };
        done.map_err(SubmitErrorKind::Prevented)
    }
}

/// For a process started from outside of any process; the starting calls return its handle.
impl Spawner<Handle> {
    /// Starts an actor, a process or an async function: see [`Handle::spawn`].
    ///
    /// # Errors
    /// As for [`Handle::submit`], and [`SubmitErrorKind::NotNamed`] or
    /// [`SubmitErrorKind::Prevented`].
    pub fn spawn<K, W>(self, what: W) -> Result<ProcessHandle<W::Message>, SubmitError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
    {
        let started = self.start(
            Message::kind_of::<W::Message>(),
            what.into_process().unstarted().0,
            W::Process::METHOD,
            Payloads::new(),
        );
        started.map(ProcessHandle::with_messages)
    }

    /// Starts a process with a method and an input: see [`Handle::submit`].
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    pub fn submit(
        self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<ProcessHandle, SubmitError> {
        let process = ProcessBox::new(process);
        self.start(None, process, method.into(), input.into_payloads())
    }

    fn start(
        self,
        kind: Option<Kind>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
    ) -> Result<ProcessHandle, SubmitError> {
        let shared = Arc::clone(&self.from.shared);
        self.start_in(&shared, Birth::default(), kind, process, method, input)
    }
}

/// For a child of a process; the starting calls return its address or PID.
impl Spawner<Context> {
    /// Has the starting process monitor the new process: see [`Context::monitor`].
    pub fn monitored(mut self, tag: Tag) -> Self {
        // Without a scheduler nothing is started.
        if let Some(watcher) = self.from.backend::<ProcessCell>() {
            self.add(Act::Monitor(watcher, tag));
        }
        self
    }

    /// Returns the context of the starting process.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.from
    }

    /// Starts an actor, a process or an async function: see [`Handle::spawn`].
    ///
    /// # Errors
    /// As for [`Handle::submit`], and [`SubmitErrorKind::NotNamed`] or
    /// [`SubmitErrorKind::Prevented`].
    pub fn spawn<K, W>(self, what: W) -> Result<Address<W::Message>, SubmitError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
    {
        let child = self.start(
            Message::kind_of::<W::Message>(),
            what.into_process().unstarted().0,
            W::Process::METHOD,
            Payloads::new(),
        )?;
        Ok(Address::from(&child.with_messages()))
    }

    /// Starts a process with a method and an input: see [`Context::submit`].
    ///
    /// # Errors
    /// As for [`spawn`](Self::spawn).
    pub fn submit(
        self,
        process: impl Process,
        method: impl Into<Symbol>,
        input: impl IntoPayloads,
    ) -> Result<Pid, SubmitError> {
        let process = ProcessBox::new(process);
        let started = self.start(None, process, method.into(), input.into_payloads());
        started.map(|child| child.pid())
    }

    fn start(
        self,
        kind: Option<Kind>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
    ) -> Result<ProcessHandle, SubmitError> {
        let Some(task) = self.from.backend::<ProcessCell>() else {
            let error = SubmitError::new(SubmitErrorKind::Stopping);
            return Err(error.with_process(process.into_box(), input));
        };
        self.start_in(&task.shared, Birth::by(&task), kind, process, method, input)
    }
}

impl<F> Spawner<F> {
    pub(crate) fn new(from: F) -> Self {
        Self {
            from,
            first: None,
            others: Vec::new(),
            names: Vec::new(),
            limit: None,
        }
    }

    /// Gives the process a name. Other processes find the name before the process's `init` has
    /// returned. Several calls give it several names.
    pub fn named(mut self, name: impl Into<Box<str>>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Has the process at `watcher` monitor the new process.
    pub fn monitored_by<M>(mut self, watcher: &Address<M>, tag: Tag) -> Self {
        self.add(Act::Monitor(Arc::clone(&watcher.task), tag));
        self
    }

    /// Sets the most messages in the mailbox of this process, in the place of the scheduler's limit
    /// ([`Builder::mailbox_limit`](crate::Builder::mailbox_limit)) and under the same rules:
    /// further messages are refused with `Full`, or their senders wait. The limit holds for the
    /// life of the process. From 1 up: with 0 nothing is started. A limit above 2^31 - 1 counts as
    /// 2^31 - 1.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, actor_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::builder().build()?; // It is not started, so nothing is taken.
    /// let printer = actor_fn(|_, line: String, _| Ok(println!("{line}")));
    /// let printer = scheduler.spawner().mailbox_limit(2).spawn(printer)?;
    /// printer.send("one".into())?;
    /// printer.send("two".into())?;
    /// let refused = printer.send("three".into()).unwrap_err();
    /// assert!(refused.kind.is_full());
    /// assert_eq!(refused.into_message::<String>()?, "three");
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn mailbox_limit(mut self, messages: usize) -> Self {
        self.limit = Some(Limit::of(messages));
        self
    }

    /// Lets the mailbox of this process take any number of messages, whatever the scheduler's limit
    /// is.
    pub fn no_mailbox_limit(mut self) -> Self {
        self.limit = Some(Limit::NONE);
        self
    }

    /// Puts a message into the mailbox before any other. An actor or a task with messages of
    /// another type is not started, nor is a process with a limit below the number of first
    /// messages.
    pub fn with_message(mut self, message: Message) -> Self {
        self.add(Act::Message(message));
        self
    }

    /// Sets a value that the process and its children inherit, in the place of the parent's value
    /// of the same type: see [`ContextExt::inherited`].
    ///
    /// [`ContextExt::inherited`]: crate::ContextExt::inherited
    pub fn with_inherited<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.add(Act::Value(Arc::new(value)));
        self
    }

    /// Accounts the process under the label, and its children unless they have labels of their own:
    /// see [`ContextExt::set_label`].
    ///
    /// [`ContextExt::set_label`]: crate::ContextExt::set_label
    pub fn labelled(mut self, label: impl Into<Box<str>>) -> Self {
        self.add(Act::Label(label.into()));
        self
    }

    /// Calls `hook` when the process has its PID, and before its `init`: for crates above the
    /// scheduler, which register exit actions there, for instance. The process ends after the hook
    /// at the earliest. When the hook fails or panics, nothing was started. Exit actions are then
    /// notified by [`ExitAction::not_started`](crate::ExitAction::not_started), as they are when
    /// `init` fails.
    pub fn before_init(
        mut self,
        hook: impl FnOnce(&Address) -> Result<(), BoxError> + Send + 'static,
    ) -> Self {
        self.add(Act::Hook(Box::new(hook)));
        self
    }

    fn add(&mut self, act: Act) {
        if self.first.is_none() {
            self.first = Some(act);
        } else {
            self.others.push(act);
        }
    }

    fn start_in(
        self,
        shared: &Arc<Shared>,
        birth: Birth<'_>,
        kind: Option<Kind>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
    ) -> Result<ProcessHandle, SubmitError> {
        let Self {
            first,
            others,
            names,
            limit,
            ..
        } = self;
        let birth = birth.with_limit(limit);
        let result = shared.submit_with(birth, process, method, input, move |child| {
            if limit == Some(Limit::of(0)) {
                let why = "mailbox_limit must be at least 1";
                return Err(SubmitErrorKind::Prevented(why.into()));
            }
            // So that its type is known when it is found by its name.
            child.accepts.set(kind);
            for act in first.into_iter().chain(others) {
                act.carry_out(child)?;
            }
            for name in &names {
                let named = shared.register_name(name, child);
                named.map_err(SubmitErrorKind::NotNamed)?;
            }
            Ok(())
        });
        shared.probe.called(shared, "spawner");
        result
    }
}

impl<F> fmt::Debug for Spawner<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// Begins to start a process, with properties that hold from its first moment on.
    pub fn spawner(&self) -> Spawner<Self> {
        Spawner::new(self.clone())
    }

    /// Begins to start a process with a name. When the name is taken, nothing is started: see
    /// [`Spawner`].
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, RegisterNameErrorKind, SubmitErrorKind, process_fn};
    /// # use ganger_sched::Scheduler;
    /// let scheduler = Scheduler::builder().build()?;
    /// let logger = || process_fn(|_, _, _| Ok(()));
    /// let first = scheduler.named("logger").spawn(logger())?;
    /// let refused = scheduler.named("logger").spawn(logger()).unwrap_err();
    /// let SubmitErrorKind::NotNamed(why) = refused.kind else { panic!() };
    /// assert_eq!(why.kind, RegisterNameErrorKind::Taken { holder: first.pid() });
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn named(&self, name: impl Into<Box<str>>) -> Spawner<Self> {
        self.spawner().named(name)
    }
}
