//! Asking a process, and getting its answer.
//!
//! **Problem.** A process asks another process, and a thread or a task asks a process. Each wants
//! an answer of a known type, or a notice that none comes.
//!
//! **Rejected.** An answer as another message to the asker: the asker would not learn of the other
//! process's end, and code outside of processes has no mailbox.
//!
//! **Protocol.** A call is sent as a message with a [`Reply`] inside. For a process the call is a
//! command, so its answer is a completion. For other callers the answer goes into a slot, shared by
//! the reply and the [`Answer`]. A dropped reply, for instance in the mailbox of a process that
//! ends, is an answer as well.
//!
//! A program in search of deadlocks learns the process and the answer of each wait
//! (`ganger_wait::watch`). Without a watch this costs a load.

use crate::api::handle::WeakHandle;
use crate::api::process_handle::{Address, ProcessHandle};
use crate::api::typed::{deliver, in_node};
use crate::base::contain::{contain, contain_and_report};
use crate::blocking::{block_if_replaced, may_wait, may_wait_for};
use crate::handlers::calls::{CALL, Delivery};
use crate::probe::{Decide, Decider};
use crate::process::dropped;
use crate::progress::report::NotStarted;
use crate::runtime::cell::Task;
use crate::runtime::shared::Shared;
use ganger_proc_api::{
    BoxError, Command, CommandError, Completer, CompletionSink, EndCall, Exclusive, Message,
    Payload, Pid, Reply, SendErrorKind, Tag, TypedCommand,
};
use ganger_sync::Parker;
use ganger_sync::sync::{Mutex, lock};
use ganger_wait::watch::{self, Asked};
use std::any::Any;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The error for a thread that must not wait.
const CANNOT_WAIT: &str = "a blocking wait for an answer would block the worker that runs the \
                           called process; in a step use `out.ask(call, tag)`, in a task \
                           `.await`";

/// The error for a process asked by itself, for crates that pass questions on.
#[doc(hidden)]
pub const CALLS_ITSELF: &str = "a process can't call itself";

/// A question was not asked, because the process refuses it. The message is gone.
///
/// The error inside of [`CommandError::Failed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("can't ask {pid}: {kind}")]
#[non_exhaustive]
pub struct CallRefused {
    /// The refusing process.
    pub pid: Pid,
    /// Why the process refuses the question.
    pub kind: SendErrorKind,
}

/// Makes the error of a refused question.
type Refused = fn(CallRefused) -> BoxError;

/// Finds a scheduler in the value of a question.
type FindScheduler = fn(&mut Payload) -> Option<Weak<Shared>>;

/// Finds the called process in the value of a question: the value has the only reference to it
/// counted by a question.
type FindTask = fn(&Payload) -> Option<&Task>;

/// The value of a question to a process: the process, the maker of the message, and the maker of
/// the error.
type ToProcess<F> = (Task, Exclusive<F>, Refused);

/// The value of a question answered by a scheduler, the function that finds the scheduler, and the
/// asking function.
type Inside<V, F> = (V, fn(&V) -> Option<&WeakHandle>, F);

/// A question to a process, made by [`Address::call`], and not asked yet.
///
/// These ask it:
///
/// - a step, by `out.ask(call, tag)`: the answer comes as a completion with `tag`;
/// - a thread outside of any process, by [`wait`](Self::wait) or [`begin`](Self::begin);
/// - an asynchronous task, by `.await`.
#[must_use = "a call does nothing until it is asked: `out.ask(call, tag)`, `wait` or `.await`"]
pub struct Call<T> {
    /// `None` where code passes the question on.
    called: Option<FindTask>,
    /// Finds the answering scheduler, in the value of a question that is passed on.
    scheduler: Option<FindScheduler>,
    /// A [`Delivery`], as the command has it: made once, where it stays.
    question: Payload,
    answer: PhantomData<fn() -> T>,
}

impl<M: Send + 'static> Address<M> {
    /// Creates a question to the process: `message` makes its message of the [`Reply`]. Mostly the
    /// message is a variant of an enum.
    ///
    /// ```
    /// use ganger_proc_api::{Actor, BoxError, Context, Reply, StepOutput, StepResult};
    /// use ganger_sched::Scheduler;
    ///
    /// enum Count {
    ///     Add(u64),
    ///     Get(Reply<u64>),
    /// }
    ///
    /// struct Counter(u64);
    ///
    /// impl Actor for Counter {
    ///     type Message = Count;
    ///
    ///     fn receive(&mut self, _: &Context, message: Count, _: &mut StepOutput) -> StepResult {
    ///         match message {
    ///             Count::Add(number) => self.0 += number,
    ///             Count::Get(reply) => reply.complete(self.0),
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let counter = scheduler.spawn(Counter(0))?;
    /// counter.send(Count::Add(42))?;
    /// assert_eq!(counter.call(Count::Get).wait()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn call<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> M + Send + 'static,
    ) -> Call<T> {
        Call::new(Arc::clone(&self.task), message, |refused| refused.into())
    }

    /// Creates a question as [`call`](Self::call) does, with the error of a question refused by the
    /// process: for crates whose users do not know of the process.
    #[doc(hidden)]
    pub fn call_or<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> M + Send + 'static,
        refused: fn(CallRefused) -> BoxError,
    ) -> Call<T> {
        Call::new(Arc::clone(&self.task), message, refused)
    }
}

impl<M: Send + 'static> ProcessHandle<M> {
    /// Creates a question to the process: see [`Address::call`].
    pub fn call<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> M + Send + 'static,
    ) -> Call<T> {
        self.address().call(message)
    }
}

impl<T: Send + 'static> Call<T> {
    /// Makes a call. `refused` makes the error of a question refused by the process.
    fn new<M, F>(task: Task, message: F, refused: Refused) -> Self
    where
        M: Send + 'static,
        F: FnOnce(Reply<T>) -> M + Send + 'static,
    {
        let question = Payload::any(Delivery {
            value: Payload::any::<ToProcess<F>>((task, Exclusive::new(message), refused)),
            run: |value, completer| {
                let (task, message, refused) = value.take::<ToProcess<F>>()?;
                let asked = (task.pid(), task.shared.number);
                if completer.asker() == Some(asked) {
                    return Err(CALLS_ITSELF.into());
                }
                let completer = if watch::is_on() {
                    watch::asked_by(completer, (task.target(), asked.1))
                } else {
                    completer
                };
                let message = message.into_inner()(Reply::new(completer));
                let message = Message::of(message);
                // The reply in a refused message is dropped here, before the caller hears of the
                // error.
                deliver(&task, in_node(&task, message)).map_err(|error| {
                    let (pid, kind) = (task.target(), error.kind);
                    refused(CallRefused { pid, kind })
                })
            },
        });
        let answer = PhantomData;
        Self {
            called: Some(|value| Some(&value.downcast_ref::<ToProcess<F>>()?.0)),
            scheduler: None,
            question,
            answer,
        }
    }

    /// Makes a question without a message to a process: `pass` takes the [`Reply`] where the call
    /// is asked, on the waiting thread, or on the worker of the step. `pass` should be short. For
    /// crates above the scheduler.
    ///
    /// ```
    /// use ganger_proc_api::{BoxError, Reply};
    /// use ganger_sched::Call;
    ///
    /// let call = Call::by(|reply: Reply<u64>| Ok(reply.complete(42)));
    /// assert_eq!(call.wait()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn by<F>(pass: F) -> Self
    where
        F: FnOnce(Reply<T>) -> Result<(), BoxError> + Send + 'static,
    {
        let question = Payload::any(Delivery {
            value: Payload::any(pass),
            run: |value, completer| value.take::<F>()?(Reply::new(completer)),
        });
        let answer = PhantomData;
        Self {
            called: None,
            scheduler: None,
            question,
            answer,
        }
    }

    /// Creates a question as [`by`](Self::by) does, answered by the scheduler that `scheduler`
    /// finds in `value`: a wait for the answer is refused while the scheduler has not been started.
    /// A step does not check when it asks.
    #[doc(hidden)]
    pub fn by_inside<V, F>(value: V, scheduler: fn(&V) -> Option<&WeakHandle>, pass: F) -> Self
    where
        V: Send + 'static,
        F: FnOnce(V, Reply<T>) -> Result<(), BoxError> + Send + 'static,
    {
        let question = Payload::any(Delivery {
            value: Payload::any::<Inside<V, F>>((value, scheduler, pass)),
            run: |value, completer| {
                let (value, _, pass) = value.take::<Inside<V, F>>()?;
                pass(value, Reply::new(completer))
            },
        });
        let scheduler: FindScheduler = |value| {
            let (value, scheduler, _) = value.downcast_mut::<Inside<V, F>>()?;
            scheduler(value).map(|it| Weak::clone(&it.shared))
        };
        Self {
            called: None,
            scheduler: Some(scheduler),
            question,
            answer: PhantomData,
        }
    }

    /// Asks on behalf of another question, and answers it with this question's answer: for code
    /// that passes questions on, by [`by`](Self::by). The reply knows the asking process, and
    /// whether the answer is still wanted.
    ///
    /// # Errors
    /// Why the question was not asked. The reply has been dropped.
    pub fn pass_on(self, reply: Reply<T>) -> Result<(), BoxError> {
        self.question.take::<Delivery>()?.deliver(reply.untyped())
    }

    /// Returns the PID of the called process; `None` for a question that is [passed](Self::by) on.
    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.called().map(|it| it.target())
    }

    /// Sends the question. Never blocks. Not for steps, which ask by `out.ask(call, tag)`.
    pub fn begin(mut self) -> Answer<T> {
        let question = self.question.downcast_mut::<Delivery>();
        let scheduler = (self.scheduler).and_then(|it| it(&mut question?.value));
        let slot = Arc::new(Slot {
            task: self.called().cloned(),
            scheduler,
            state: Mutex::new(State::Waiting(Waits::default())),
        });
        let sink = Arc::clone(&slot);
        let completer = Completer::new(sink, 0, 0);
        let question = self.question.take::<Delivery>().map_err(BoxError::from);
        if let Err(error) = question.and_then(|it| it.deliver(completer)) {
            slot.refuse(error);
        }
        let answer = PhantomData;
        Answer { slot, answer }
    }

    /// Asks, and blocks until the answer is here: see [`Answer::wait`].
    ///
    /// # Errors
    /// The errors of [`Answer::wait`].
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn wait(self) -> Result<T, CommandError> {
        self.begin().wait()
    }

    /// Asks, and blocks until the answer is here, or `timeout` has passed.
    ///
    /// # Errors
    /// As for [`Answer::wait_timeout`].
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, CommandError> {
        self.begin().wait_timeout(timeout)
    }
}

impl<T> Call<T> {
    /// Returns the called process.
    fn called(&self) -> Option<&Task> {
        self.called?(&self.question.downcast_ref::<Delivery>()?.value)
    }
}

/// As a command, a call needs no handler to be registered.
impl<T: Send + 'static> TypedCommand for Call<T> {
    type Answer = T;

    fn into_command(self) -> Command {
        Command::new(CALL, self.question)
    }
}

impl<T: Send + 'static> IntoFuture for Call<T> {
    type Output = Result<T, CommandError>;
    type IntoFuture = Answer<T>;

    fn into_future(self) -> Answer<T> {
        self.begin()
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.called().map(|it| it.target());
        f.debug_tuple("Call").field(&pid).finish()
    }
}

/// The answer to a [`Call`] that is under way: a future, or waited for by a thread. Dropping it
/// notifies the answering process, by [`Reply::is_cancelled`]. An error not looked at is
/// [reported](crate::Builder::on_failure).
#[must_use = "dropping it gives the answer up"]
pub struct Answer<T> {
    slot: Arc<Slot>,
    answer: PhantomData<fn() -> T>,
}

impl<T: Any> Answer<T> {
    /// Returns whether the answer is here and [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !matches!(*lock(&self.slot.state), State::Waiting(_))
    }

    /// Blocks until the answer is here.
    ///
    /// # Errors
    /// [`CommandError::Failed`] in these cases:
    /// - the process has answered so;
    /// - the message was refused (with a [`CallRefused`] inside);
    /// - the scheduler has not been started, so no answer would come (with [`NotStarted`] inside);
    /// - this thread must not wait, such as a step of the process itself, or a call in a
    ///   [`Driver`](crate::Driver).
    ///
    /// [`CommandError::Ended`] when the process has ended, and [`CommandError::Dropped`] when it
    /// has dropped the reply.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn wait(self) -> Result<T, CommandError> {
        self.wait_within(None)
    }

    /// Blocks until the answer is here, or `timeout` has passed.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait), and [`CommandError::Timeout`]. In a scheduler that has not been
    /// started it waits for the whole `timeout`, because another thread may start it.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn wait_timeout(self, timeout: Duration) -> Result<T, CommandError> {
        self.wait_within(Some(timeout))
    }

    #[cfg_attr(feature = "sim", track_caller)]
    fn wait_within(self, timeout: Option<Duration>) -> Result<T, CommandError> {
        let thread = Arc::new(Parker::new());
        if let Some(answer) = self.slot.poll(&Waker::from(Arc::clone(&thread))) {
            return Ok(answer?.take()?);
        }
        Decider::refuse_to_block("wait", "`Rt::answer`");
        if timeout.is_none() && self.slot.is_unstarted() {
            return Err(CommandError::Failed(NotStarted.into()));
        }
        let may_wait = match &self.slot.task {
            Some(task) => may_wait_for(&task.shared, task.pid()),
            None => may_wait(),
        };
        let has_waited = may_wait
            && block_if_replaced(|| match timeout {
                None => thread.park(),
                Some(timeout) => {
                    thread.park_timeout(timeout);
                }
            });
        match self.slot.poll(Waker::noop()) {
            Some(answer) => Ok(answer?.take()?),
            None if self.slot.is_unstarted() => Err(CommandError::Failed(NotStarted.into())),
            None if has_waited => Err(CommandError::Timeout),
            None => Err(CommandError::Failed(CANNOT_WAIT.into())),
        }
    }
}

/// # Panics
/// Polling it again after it was ready panics.
impl<T: Any> Future for Answer<T> {
    type Output = Result<T, CommandError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.slot.poll(context.waker()) {
            Some(answer) => Poll::Ready(answer.and_then(|it| Ok(it.take()?))),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        let before = mem::replace(&mut *lock(&self.slot.state), State::Over);
        if let (State::Answered(Err(error)), Some(task)) = (&before, &self.slot.task) {
            task.report_dropped(error);
        }
        if let State::Waiting(waits) = before {
            let calls = waits.calls.iter().filter_map(Weak::upgrade);
            calls.for_each(|it| self.slot.contained("end of a call", || it.call()));
        }
    }
}

impl<T> fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.slot.task.as_ref().map(|it| it.target());
        f.debug_tuple("Answer").field(&pid).finish()
    }
}

/// The place of an answer for the asking code.
struct Slot {
    /// The called process, if the question has one.
    task: Option<Task>,
    /// The answering scheduler, where known for a question that is passed on.
    scheduler: Option<Weak<Shared>>,
    state: Mutex<State>,
}

enum State {
    Waiting(Waits),
    Answered(Result<Payload, CommandError>),
    /// The answer has been taken or given up.
    Over,
}

/// The calls to make when the waiting ends.
#[derive(Default)]
struct Waits {
    /// By the answer.
    waker: Option<Waker>,
    /// For reports of deadlocks, since the first look.
    asked: Option<Asked>,
    /// By the drop of the `Answer`.
    calls: Vec<Weak<EndCall>>,
}

impl Slot {
    /// Takes the answer, or has `waker` woken by it.
    fn poll(&self, waker: &Waker) -> Option<Result<Payload, CommandError>> {
        // The waker's code runs without the lock.
        let waker = waker.clone();
        let mut state = lock(&self.state);
        match &mut *state {
            State::Waiting(waits) => {
                let before = waits.waker.replace(waker);
                if let (None, Some(task)) = (&waits.asked, &self.task) {
                    waits.asked = Some(watch::asks((task.target(), task.shared.number)));
                }
                drop(state);
                drop(before);
                None
            }
            _ => match mem::replace(&mut *state, State::Over) {
                State::Answered(answer) => Some(answer),
                _ => panic!("an Answer was polled after it had completed"),
            },
        }
    }

    fn fill(&self, answer: Result<Payload, CommandError>) {
        let mut state = lock(&self.state);
        if let State::Waiting(waits) = &mut *state {
            let waits = mem::take(waits);
            *state = State::Answered(answer);
            drop(state);
            if let Some(waker) = waits.waker {
                self.contained("waker", || waker.wake());
            }
        }
    }

    /// Returns whether no answer would come: the answering scheduler has not been started.
    fn is_unstarted(&self) -> bool {
        let task = self.task.as_ref().map(|it| it.shared.is_unstarted());
        task.unwrap_or_else(|| {
            let scheduler = self.scheduler.as_ref().and_then(Weak::upgrade);
            scheduler.is_some_and(|it| it.is_unstarted())
        })
    }

    /// Stores why the question has not been sent, in the place of the dropped reply.
    fn refuse(&self, error: BoxError) {
        *lock(&self.state) = State::Answered(Err(CommandError::Failed(error)));
    }

    fn contained(&self, what: &'static str, f: impl FnOnce()) {
        match &self.task {
            Some(task) => contain_and_report(what, task.target(), task.shared.own_counters(), f),
            None => drop(contain(f)),
        }
    }
}

impl CompletionSink for Slot {
    fn complete(self: Arc<Self>, _: Tag, _: u64, answer: Result<Payload, CommandError>) {
        self.fill(answer);
    }

    fn complete_dropped(self: Arc<Self>, tag: Tag, token: u64) {
        if let Err(this) = dropped::put_aside(self, tag, token) {
            this.fill(Err(CommandError::Dropped));
        }
    }

    /// Returns `None`: the slot belongs to no process.
    fn pid(&self) -> Option<Pid> {
        None
    }

    fn is_cancelled(&self, _: u64) -> bool {
        matches!(*lock(&self.state), State::Over)
    }

    fn on_end(self: Arc<Self>, _: u64, call: Weak<EndCall>) -> bool {
        match &mut *lock(&self.state) {
            State::Waiting(waits) => waits.calls.push(call),
            State::Answered(_) => {}
            State::Over => return false,
        }
        true
    }
}
