//! Processes by their names, and their ends, from inside and outside of processes.
//!
//! **Problem.** Several callers at a time want a process by its name, and send a first message to
//! it, and one of them must start it. An unsent message must come back, whole.
//!
//! **Rejected.** Giving the message to the new process before it has its name: a process that does
//! not get the name, because another process was quicker, takes the message along.
//!
//! **Protocol.** A caller that finds no process starts a process. The new process takes the name
//! before its `init`, and then the message, out of a place known to both. A process that does not
//! get the name is not started. The caller then finds the message in its place, and looks again.

use crate::end::End;
use crate::target::{Target, TargetError};
use ganger_proc_api::{
    BoxError, Context, EndKind, Envelope, Message, Pid, RegisterNameError, RegisterNameErrorKind,
    Reply, SendErrorKind, SubmitErrorKind,
};
use ganger_sched::internal::CALLS_ITSELF;
use ganger_sched::{Address, Call, ContextExt, Handle, IntoProcess, Startable, WrongAddress};
use ganger_sync::sync::{Mutex, lock};
use std::any::Any;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The methods that this crate adds to the [`Handle`] of a scheduler, and to [`Context`].
pub trait Registry {
    /// Gives the address of the process with this name, if it takes messages of type `M`.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_link::Registry;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let sum = actor_fn(|_, number: u64, out| { out.done(2 * number); Ok(()) });
    /// let sum = scheduler.named("sum").spawn(sum)?;
    /// scheduler.lookup::<u64>("sum")?.send(21)?;
    /// assert_eq!(sum.wait().take::<u64>()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`LookupError`] when no process has the name, or it takes other messages.
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError>;

    /// Gives the address of the process with this name, or starts a process under the name. Of
    /// several such calls at a time, one starts it.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_link::Registry;
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let printer = || actor_fn(|_, _: String, _| Ok(()));
    /// let one = scheduler.lookup_or_spawn("printer", printer)?;
    /// let other = scheduler.lookup_or_spawn("printer", printer)?;
    /// assert!(one.is_same(&other));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`ByNameError`] when the process takes other messages, is being closed, or none could be
    /// started.
    fn lookup_or_spawn<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send;

    /// Sends the message to the process with this name, or starts a process under the name. In the
    /// latter case, the message is in its mailbox before its `init` is called. Of several such
    /// calls at a time, one starts it.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_link::Registry;
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let printer = || actor_fn(|_, _: String, _| Ok(()));
    /// let one = scheduler.spawn_or_send("printer", printer, "hello".to_owned())?;
    /// let other = scheduler.spawn_or_send("printer", printer, "again".to_owned())?;
    /// assert!(one.is_same(&other));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`ByNameError`], with the message inside, when it could neither be sent nor started. While
    /// the process with the name is being closed, it says [`SendErrorKind::Ended`].
    fn spawn_or_send<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
        message: W::Message,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send;

    /// Makes a question to the process with this name, or to a process started under the name when
    /// the question is asked: as [`spawn_or_send`](Self::spawn_or_send).
    ///
    /// ```
    /// use ganger_link::Registry;
    /// use ganger_proc_api::{BoxError, Reply, actor_fn};
    /// # use ganger_sched::Scheduler;
    ///
    /// # let scheduler = Scheduler::start_default()?;
    /// let tickets = || {
    ///     let mut next = 0;
    ///     actor_fn(move |_, reply: Reply<u64>, _| {
    ///         next += 1;
    ///         Ok(reply.complete(next))
    ///     })
    /// };
    /// assert_eq!(scheduler.spawn_or_call("tickets", tickets, |reply| reply).wait()?, 1);
    /// assert_eq!(scheduler.spawn_or_call("tickets", tickets, |reply| reply).wait()?, 2);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// When the question can neither be sent nor a process started, the call ends with
    /// [`CommandError::Failed`](ganger_proc_api::CommandError::Failed) and a [`ByNameErrorKind`]
    /// inside. A failed start answers all questions of the meantime.
    fn spawn_or_call<K, W, T, F>(
        &self,
        name: &str,
        start: impl FnMut() -> W + Send + 'static,
        message: F,
    ) -> Call<T>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> W::Message + Send + 'static;

    /// Gives the end of a process, for any number of threads and tasks. A process that is gone has
    /// ended with [`ExitCause::NotFound`](ganger_proc_api::ExitCause::NotFound).
    ///
    /// # Errors
    /// [`TargetError`] when no process is meant that this scheduler can reach.
    fn end_of(&self, target: impl Target) -> Result<End, TargetError>;
}

/// No address was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// No process has this name.
    #[error("no process is registered as {0:?}")]
    NoSuchName(Box<str>),
    /// The process takes messages of another type.
    #[error(transparent)]
    WrongType(#[from] WrongAddress),
}

/// No process with a name was found or started, or a message was not sent to it.
#[derive(Debug)]
pub struct ByNameError {
    /// Why.
    pub kind: ByNameErrorKind,
    message: Option<Message>,
}

/// Why no process with a name was found or started, or a message was not sent to it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ByNameErrorKind {
    /// The process with the name takes messages of another type.
    WrongType(WrongAddress),
    /// The process with the name has not taken the message, or is being closed.
    Refused(SendErrorKind),
    /// None has the name, and none was started. If its `init` has failed, the message was in its
    /// mailbox.
    NotStarted(SubmitErrorKind),
}

impl ByNameError {
    fn new<M: Send + 'static>(kind: ByNameErrorKind, message: Option<M>) -> Self {
        let message = message.map(Message::of);
        Self { kind, message }
    }

    /// Returns the message, to be sent elsewhere or later, if it is of type `M`.
    #[must_use]
    pub fn into_message<M: Any>(self) -> Option<M> {
        self.message?.take().ok()
    }
}

impl fmt::Display for ByNameErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType(error) => error.fmt(f),
            Self::Refused(kind) => write!(f, "can't send to the process with that name: {kind}"),
            Self::NotStarted(kind) => write!(f, "no process with that name was started: {kind}"),
        }
    }
}

/// The text of the inner error is part of this error's text. So its source is this error's source.
impl Error for ByNameErrorKind {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::WrongType(error) => error.source(),
            Self::Refused(kind) => kind.source(),
            Self::NotStarted(kind) => kind.source(),
        }
    }
}

impl fmt::Display for ByNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Error for ByNameError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

impl Registry for Handle {
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError> {
        match self.whereis(name).and_then(|pid| self.address(pid)) {
            Some(address) => Ok(address.typed()?),
            None => Err(LookupError::NoSuchName(name.into())),
        }
    }

    fn lookup_or_spawn<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
    {
        find_or_spawn(self, name, start, None)
    }

    fn spawn_or_send<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
        message: W::Message,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
    {
        find_or_spawn(self, name, start, Some(message))
    }

    fn spawn_or_call<K, W, T, F>(
        &self,
        name: &str,
        start: impl FnMut() -> W + Send + 'static,
        message: F,
    ) -> Call<T>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> W::Message + Send + 'static,
    {
        let (scheduler, name) = (self.downgrade(), Box::<str>::from(name));
        Call::by(move |reply: Reply<T>| {
            let Some(scheduler) = scheduler.upgrade() else {
                return Err(stopping().into());
            };
            if reply.pid().is_some() && reply.pid() == scheduler.whereis(&name) {
                return Err(CALLS_ITSELF.into());
            }
            // The reply in a refused message is dropped here, before the caller hears of the error.
            let sent = scheduler.spawn_or_send(&name, start, message(reply));
            sent.map(drop).map_err(|error| BoxError::from(error.kind))
        })
    }

    fn end_of(&self, target: impl Target) -> Result<End, TargetError> {
        Ok(End::of(self, target.pid_in(self)?))
    }
}

fn stopping() -> ByNameErrorKind {
    ByNameErrorKind::NotStarted(SubmitErrorKind::Stopping)
}

/// Gives the process with this name. The process has the message, if there was a message.
fn find_or_spawn<K, W>(
    scheduler: &Handle,
    name: &str,
    mut start: impl FnMut() -> W,
    mut message: Option<W::Message>,
) -> Result<Address<W::Message>, ByNameError>
where
    W: IntoProcess<K>,
    W::Process: Startable,
    W::Message: Send,
{
    loop {
        // The process that is being closed, and its refusal.
        let mut refused = None;
        match scheduler.lookup::<W::Message>(name) {
            Ok(address) => {
                let sent = match message.take() {
                    None if address.is_closed() => {
                        Err((SendErrorKind::Ended(EndKind::Unknown), None))
                    }
                    None => Ok(()),
                    Some(message) => (address.send(message))
                        .map_err(|error| (error.kind, taken_back(*error.envelope))),
                };
                match sent {
                    Ok(()) => return Ok(address),
                    // It is ending. Perhaps its name is free by now.
                    Err((kind, back)) if address.is_closed() => {
                        refused = Some((address.pid(), kind));
                        message = back;
                    }
                    Err((kind, back)) => {
                        return Err(ByNameError::new(ByNameErrorKind::Refused(kind), back));
                    }
                }
            }
            Err(LookupError::WrongType(error)) => {
                return Err(ByNameError::new(ByNameErrorKind::WrongType(error), message));
            }
            Err(LookupError::NoSuchName(_)) => {}
        }
        match spawn(scheduler, name, start(), message) {
            Ok(address) => return Ok(address),
            Err(not) => {
                let kind = match (not.why, refused) {
                    (Why::Taken(holder), Some((pid, kind))) if pid == holder => {
                        ByNameErrorKind::Refused(kind)
                    }
                    (Why::Taken(_), _) => {
                        // Another call has been earlier.
                        message = not.message;
                        continue;
                    }
                    (Why::Full(kind), _) => ByNameErrorKind::Refused(kind),
                    (Why::Not(kind), _) => ByNameErrorKind::NotStarted(kind),
                };
                return Err(ByNameError::new(kind, not.message));
            }
        }
    }
}

/// Takes the message back from a refusal of a typed address.
fn taken_back<M: 'static>(envelope: Envelope) -> Option<M> {
    envelope.message.take().ok()
}

/// The reason for no new process with the message.
struct NotSpawned<M> {
    why: Why,
    message: Option<M>,
}

enum Why {
    /// Another process has the name.
    Taken(Pid),
    /// The new process has not taken its first message.
    Full(SendErrorKind),
    Not(SubmitErrorKind),
}

/// Starts a process that takes the name, and then the message, before its `init`.
fn spawn<K, W>(
    scheduler: &Handle,
    name: &str,
    what: W,
    message: Option<W::Message>,
) -> Result<Address<W::Message>, NotSpawned<W::Message>>
where
    W: IntoProcess<K>,
    W::Process: Startable,
    W::Message: Send,
{
    /// The message, and why it was refused.
    struct First<M>(Option<M>, Option<SendErrorKind>);

    let first = Arc::new(Mutex::new(First(message, None)));
    let (its, takes, names) = (
        Arc::clone(&first),
        Box::<str>::from(name),
        scheduler.clone(),
    );
    let hook = move |child: &Address| {
        names.register_name(&takes, child.pid())?;
        let message = lock(&its).0.take();
        if let Some(message) = message
            && let Err(error) = child.send(Message::of(message))
        {
            *lock(&its) = First(taken_back(*error.envelope), Some(error.kind));
        }
        Ok(())
    };
    let started = scheduler.spawner().before_init(hook).spawn(what);
    let First(message, refused) = std::mem::replace(&mut *lock(&first), First(None, None));
    let why = match (started, refused) {
        (Ok(process), None) => return Ok(process.address().clone()),
        (Ok(_), Some(kind)) => Why::Full(kind),
        (Err(error), _) => match error.kind {
            SubmitErrorKind::Prevented(error) => match error.downcast::<RegisterNameError>() {
                Ok(error) => match error.kind {
                    RegisterNameErrorKind::Taken { holder } => Why::Taken(holder),
                    _ => Why::Not(SubmitErrorKind::NotNamed(*error)),
                },
                Err(error) => Why::Not(SubmitErrorKind::Prevented(error)),
            },
            kind => Why::Not(kind),
        },
    };
    Err(NotSpawned { why, message })
}

impl Registry for Context {
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError> {
        match self.scheduler() {
            Some(scheduler) => scheduler.lookup(name),
            None => Err(LookupError::NoSuchName(name.into())),
        }
    }

    fn lookup_or_spawn<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
    {
        match self.scheduler() {
            Some(scheduler) => scheduler.lookup_or_spawn(name, start),
            None => Err(ByNameError::new(stopping(), None::<()>)),
        }
    }

    fn spawn_or_send<K, W>(
        &self,
        name: &str,
        start: impl FnMut() -> W,
        message: W::Message,
    ) -> Result<Address<W::Message>, ByNameError>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
    {
        match self.scheduler() {
            Some(scheduler) => scheduler.spawn_or_send(name, start, message),
            None => Err(ByNameError::new(stopping(), Some(message))),
        }
    }

    fn spawn_or_call<K, W, T, F>(
        &self,
        name: &str,
        start: impl FnMut() -> W + Send + 'static,
        message: F,
    ) -> Call<T>
    where
        W: IntoProcess<K>,
        W::Process: Startable,
        W::Message: Send,
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> W::Message + Send + 'static,
    {
        match self.scheduler() {
            Some(scheduler) => scheduler.spawn_or_call(name, start, message),
            None => Call::by(|_| Err(stopping().into())),
        }
    }

    fn end_of(&self, target: impl Target) -> Result<End, TargetError> {
        self.scheduler()
            .ok_or(TargetError::Detached)?
            .end_of(target)
    }
}
