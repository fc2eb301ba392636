//! The calls of a context, as commands: for processes that do everything by yields, such as
//! interpreters. Their ids, 1 to 9, are Ganger's own, and no handler may be registered for them. 7
//! and 8 belong to `ganger-link`.
//!
//! [`Exec`] is of use to other processes as well: it starts a process, and its answer is the
//! result.
//!
//! ```
//! use ganger_proc_api::{BoxError, Event, Payload, process_fn};
//! use ganger_sched::Scheduler;
//! use ganger_sched::commands::Exec;
//!
//! let scheduler = Scheduler::start_default()?;
//! let parent = scheduler.spawn(process_fn(|_, events, out| {
//!     match events.next() {
//!         None => {
//!             let child = process_fn(|_, _, out| { out.done(42_u64); Ok(()) });
//!             out.ask(Exec::<u64>::new(child), 1);
//!         }
//!         Some(Event::Completion(answer)) => out.done(answer.take::<u64>()?),
//!         Some(_) => {}
//!     }
//!     Ok(())
//! }))?;
//! assert_eq!(parent.wait().take::<u64>()?, 42);
//! # Ok::<(), BoxError>(())
//! ```

use crate::api::handle::Handle;
use crate::api::process_handle::{Address, ProcessHandle};
use crate::base::contain::text_of_chain;
use crate::handlers::calls::Delivery;
use crate::process::process_box::ProcessBox;
use crate::runtime::cell::Task;
use crate::runtime::local;
use crate::submit::Birth;
use ganger_proc_api::{
    BoxError, CancelReason, Command, CommandError, CommandId, Completer, EndWatch, Envelope,
    ExitCause, ExitReason, Payload, Payloads, Pid, Process, Symbol, Tag, TypedCommand,
};
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Sends a message, with the process as its source: see
/// [`Context::send`](ganger_proc_api::Context::send). Its error is a
/// [`SendError`](ganger_proc_api::SendError), with the envelope inside.
#[derive(Debug)]
pub struct Send {
    /// To this process.
    pub target: Pid,
    /// The topic of the message.
    pub topic: Symbol,
    /// The values.
    pub payloads: Payloads,
}

/// Starts a process: see [`Context::submit`](ganger_proc_api::Context::submit). Its error is a
/// [`SubmitError`](ganger_proc_api::SubmitError), with the process inside.
pub struct Spawn {
    /// The process.
    pub process: Box<dyn Process>,
    /// The entry point.
    pub method: Symbol,
    /// The input for `init`.
    pub input: Payloads,
}

/// Ends a process without another step. Its error is a [`NotFound`](crate::NotFound).
#[derive(Debug, Clone, Copy)]
pub struct Terminate(
    /// This process.
    pub Pid,
);

/// Asks a process to finish. Its error is a [`NotFound`](crate::NotFound).
#[derive(Debug, Clone)]
pub struct Cancel {
    /// This process.
    pub target: Pid,
    /// Why.
    pub reason: CancelReason,
}

/// Monitors a process. The answer comes at once, and the notice when the process has ended, as an
/// [`Event::Exit`](ganger_proc_api::Event::Exit).
#[derive(Debug, Clone, Copy)]
pub struct Monitor {
    /// This process.
    pub target: Pid,
    /// The tag of the notice.
    pub tag: Tag,
}

/// Takes a monitor back.
#[derive(Debug, Clone, Copy)]
pub struct Demonitor {
    /// The monitored process.
    pub target: Pid,
    /// The tag of the notice.
    pub tag: Tag,
}

/// Starts a process. The answer is its result, as a `T`; a [`Payload`] is any result.
///
/// The answer is an error when the process can't be started, and [`CommandError::Ended`] when the
/// process ends without a result. When the asking process ends, or takes the command back, the
/// process is cancelled, unless it [is left alone](Self::leave).
#[must_use = "a command does nothing until it is asked for: `out.ask(command, tag)`"]
pub struct Exec<T> {
    process: Box<dyn Process>,
    is_left: bool,
    answer: PhantomData<fn() -> T>,
}

impl<T> Exec<T> {
    /// Makes the command to start the process.
    pub fn new(process: impl Process) -> Self {
        Self {
            process: Box::new(process),
            is_left: false,
            answer: PhantomData,
        }
    }

    /// Lets the process go on when its answer is not wanted any longer.
    pub fn leave(mut self) -> Self {
        self.is_left = true;
        self
    }
}

/// Names a command's id, and the act in the asking process.
trait Act: Sized + std::marker::Send + 'static {
    const ID: CommandId;

    fn act(self, task: &Task) -> Result<Payload, BoxError>;

    fn command(self) -> Command {
        let delivery = Delivery {
            value: Payload::any(self),
            run: |value, completer| {
                let answer = value.take::<Self>()?.act(&own(&completer)?)?;
                completer.complete(answer);
                Ok(())
            },
        };
        Command::new(Self::ID, Payload::any(delivery))
    }
}

/// The act of a command of a crate that builds on the scheduler.
type ActOf<T> = fn(T, &Handle, &Address) -> Result<(), BoxError>;

/// Makes a command with one of Ganger's own ids, for crates that build on the scheduler: `act`
/// carries it out for the asking process, whose address it gets.
#[doc(hidden)]
pub fn own_command<T: std::marker::Send + 'static>(id: u16, value: T, act: ActOf<T>) -> Command {
    let delivery = Delivery {
        value: Payload::any((value, act)),
        run: |value, completer| {
            let (value, act) = value.take::<(T, ActOf<T>)>()?;
            let task = own(&completer)?;
            let shared = Arc::clone(&task.shared);
            act(value, &Handle { shared }, &Address::new(task))?;
            completer.complete(());
            Ok(())
        },
    };
    Command::new(CommandId::new(id), Payload::any(delivery))
}

/// Returns the asking process, whose turn is on this thread.
fn own(completer: &Completer) -> Result<Task, BoxError> {
    local::own_process()
        .filter(|task| completer.asker() == Some((task.pid(), task.shared.number)))
        .ok_or_else(|| "the scheduler is stopping".into())
}

/// Implements `Act` for each of these commands.
macro_rules! acts {
    ($($id:literal $name:ident -> $answer:ty, |$this:ident, $task:ident| $act:expr;)*) => {$(
        impl Act for $name {
            const ID: CommandId = CommandId::new($id);

            fn act(self, $task: &Task) -> Result<Payload, BoxError> {
                let $this = self;
                let answer: $answer = $act;
                Ok(Payload::any(answer))
            }
        }

        impl TypedCommand for $name {
            type Answer = $answer;

            fn into_command(self) -> Command {
                self.command()
            }
        }
    )*};
}

acts! {
    1 Send -> (), |it, task| {
        let envelope = Envelope::new(task.pid(), it.target, it.topic, it.payloads);
        task.shared.route(envelope)?;
    };
    2 Spawn -> Pid, |it, task| {
        let process = ProcessBox::boxed(it.process);
        task.shared.submit_detached(task, process, it.method, it.input)?
    };
    3 Terminate -> (), |it, task| task.shared.terminate(it.0)?;
    4 Cancel -> (), |it, task| task.shared.cancel(it.target, it.reason)?;
    5 Monitor -> (), |it, task| Arc::clone(task).begin_monitor(it.target, it.tag)?;
    6 Demonitor -> (), |it, task| task.end_monitor(it.target, it.tag);
}

impl<T: std::marker::Send + 'static> TypedCommand for Exec<T> {
    type Answer = T;

    fn into_command(self) -> Command {
        let delivery = Delivery {
            value: Payload::any((self.process, self.is_left)),
            run: |value, completer| {
                let (process, is_left) = value.take::<(Box<dyn Process>, bool)>()?;
                let task = own(&completer)?;
                execute(&task, process, is_left, completer)
            },
        };
        Command::new(CommandId::new(9), Payload::any(delivery))
    }
}

/// The method of an executed process.
const METHOD: &str = "exec";

fn execute(
    task: &Task,
    process: Box<dyn Process>,
    is_left: bool,
    completer: Completer,
) -> Result<(), BoxError> {
    let process = ProcessBox::boxed(process);
    let shared = &task.shared;
    let birth = Birth::by(task);
    let child = shared.submit(birth, process, Symbol::new(METHOD), Payloads::new())?;
    let pid = child.pid();
    let watch = if is_left {
        None
    } else {
        let shared = Arc::downgrade(shared);
        completer.on_end(move || {
            if let Some(shared) = shared.upgrade() {
                // The process may have ended.
                let _has_ended = shared.cancel(pid, "its result is not wanted any longer".into());
            }
        })
    };
    let child = Child {
        handle: child,
        completer,
        _watch: watch,
    };
    Arc::new(Execution(Mutex::new(Some(child)))).look();
    Ok(())
}

/// An executed process, until it has ended.
struct Execution(Mutex<Option<Child>>);

struct Child {
    handle: ProcessHandle,
    completer: Completer,
    /// Cancels the process when its result is not wanted any longer.
    _watch: Option<EndWatch>,
}

impl Execution {
    /// Answers if the process has ended, and otherwise looks again when it has.
    fn look(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut place = lock(&self.0);
        let Some(child) = &mut *place else { return };
        let poll = Pin::new(&mut child.handle).poll(&mut Context::from_waker(&waker));
        let Poll::Ready(reason) = poll else { return };
        let ended = place.take();
        drop(place);
        if let Some(child) = ended {
            child.completer.finish(match reason {
                ExitReason::Done(result) => Ok(result),
                reason => Err(CommandError::Ended(ExitCause::of(&reason, text_of_chain))),
            });
        }
    }
}

impl Wake for Execution {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}

impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("method", &self.method)
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Exec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exec")
            .field("is_left", &self.is_left)
            .finish_non_exhaustive()
    }
}
