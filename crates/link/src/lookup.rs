//! Processes by their names, and their ends, from inside and outside of processes.

use crate::end::End;
use crate::target::{Target, TargetError};
use ganger_proc_api::{
    Actor, Context, Message, Pid, RegisterNameErrorKind, SendError, SendErrorKind, SubmitError,
    SubmitErrorKind,
};
use ganger_sched::{Address, ContextExt, Handle, WrongAddress};

/// What this crate adds to the [`Handle`] of a scheduler, and to [`Context`].
pub trait Lookup {
    /// The address of the process with that name, as one that takes messages of type `M`.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_link::Lookup;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let sum = actor_fn(|_, number: u64, out| { out.done(2 * number); Ok(()) });
    /// let sum = scheduler.named("sum").spawn_actor(sum)?;
    /// scheduler.lookup::<u64>("sum")?.send(21)?;
    /// assert_eq!(sum.wait().take::<u64>()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`LookupError`] when no process has the name, or it takes other messages.
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError>;

    /// Sends the message to the process that has that name, or starts one under that name. Then
    /// the message is in its mailbox before it can be found. Of several such calls at a time, one
    /// starts it.
    ///
    /// ```
    /// # use ganger_proc_api::{BoxError, actor_fn};
    /// # use ganger_sched::Scheduler;
    /// use ganger_link::Lookup;
    ///
    /// let scheduler = Scheduler::builder().build()?;
    /// let printer = || actor_fn(|_, _: String, _| Ok(()));
    /// let one = scheduler.spawn_or_send("printer", "hello".to_owned(), printer)?;
    /// let other = scheduler.spawn_or_send("printer", "again".to_owned(), printer)?;
    /// assert!(one.is_same(&other));
    /// # Ok::<(), BoxError>(())
    /// ```
    ///
    /// # Errors
    /// [`SpawnOrSendError`] when it could neither be sent nor started. While the process with the
    /// name is being closed, the message comes back with [`SendErrorKind::Closed`].
    fn spawn_or_send<A: Actor>(
        &self,
        name: &str,
        message: A::Message,
        start: impl FnMut() -> A,
    ) -> Result<Address<A::Message>, SpawnOrSendError>
    where
        A::Message: Clone;

    /// The end of a process, for any number of threads and tasks. One that is gone has ended with
    /// [`ExitCause::NotFound`](ganger_proc_api::ExitCause::NotFound).
    ///
    /// # Errors
    /// [`TargetError`] when no process of this scheduler is meant.
    fn end_of(&self, target: impl Target) -> Result<End, TargetError>;
}

/// No address was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// No process has that name.
    #[error("no process has the name {0:?}")]
    NoSuchName(Box<str>),
    /// The process takes messages of another type.
    #[error(transparent)]
    WrongType(#[from] WrongAddress),
}

/// A message was neither sent to a process with that name, nor was one started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnOrSendError {
    /// The process with the name takes messages of another type.
    #[error(transparent)]
    WrongType(#[from] WrongAddress),
    /// The process with the name has not taken the message, which is inside.
    #[error(transparent)]
    Refused(#[from] SendError),
    /// None has the name, and none was started.
    #[error(transparent)]
    NotStarted(#[from] SubmitError),
}

impl Lookup for Handle {
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError> {
        match self.whereis(name).and_then(|pid| self.address(pid)) {
            Some(address) => Ok(address.typed()?),
            None => Err(LookupError::NoSuchName(name.into())),
        }
    }

    fn spawn_or_send<A: Actor>(
        &self,
        name: &str,
        message: A::Message,
        mut start: impl FnMut() -> A,
    ) -> Result<Address<A::Message>, SpawnOrSendError>
    where
        A::Message: Clone,
    {
        loop {
            let mut refused = None;
            match self.lookup::<A::Message>(name) {
                Ok(address) => match address.send(message.clone()) {
                    Ok(()) => return Ok(address),
                    // It is ending. Perhaps its name is free by now.
                    Err(error) if error.kind == SendErrorKind::Closed => {
                        refused = Some((address.pid(), error));
                    }
                    Err(error) => return Err(error.into()),
                },
                Err(LookupError::WrongType(error)) => return Err(error.into()),
                Err(LookupError::NoSuchName(_)) => {}
            }
            let first = Message::of(message.clone());
            let started = self.named(name).with_message(first).spawn_actor(start());
            match started {
                Ok(process) => return Ok(process.address().clone()),
                Err(error) => match (holder(&error), refused) {
                    (None, _) => return Err(error.into()),
                    (Some(holder), Some((pid, refused))) if holder == pid => {
                        return Err(refused.into());
                    }
                    // Another call has been earlier.
                    (Some(_), _) => {}
                },
            }
        }
    }

    fn end_of(&self, target: impl Target) -> Result<End, TargetError> {
        Ok(End::of(self, target.pid_in(self)?))
    }
}

/// The process that has the name which was to be given.
fn holder(error: &SubmitError) -> Option<Pid> {
    match &error.kind {
        SubmitErrorKind::NotNamed(why) => match why.kind {
            RegisterNameErrorKind::Taken { holder } => Some(holder),
            _ => None,
        },
        _ => None,
    }
}

impl Lookup for Context {
    fn lookup<M: 'static>(&self, name: &str) -> Result<Address<M>, LookupError> {
        match self.scheduler() {
            Some(scheduler) => scheduler.lookup(name),
            None => Err(LookupError::NoSuchName(name.into())),
        }
    }

    fn spawn_or_send<A: Actor>(
        &self,
        name: &str,
        message: A::Message,
        start: impl FnMut() -> A,
    ) -> Result<Address<A::Message>, SpawnOrSendError>
    where
        A::Message: Clone,
    {
        match self.scheduler() {
            Some(scheduler) => scheduler.spawn_or_send(name, message, start),
            None => Err(SubmitError::new(SubmitErrorKind::Stopping).into()),
        }
    }

    fn end_of(&self, target: impl Target) -> Result<End, TargetError> {
        self.scheduler()
            .ok_or(TargetError::Detached)?
            .end_of(target)
    }
}
