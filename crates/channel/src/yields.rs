//! Waits of state machines: commands that are carried out by a future.
//!
//! **Problem.** A step does not wait. It yields, and the completion comes with its tag. A process
//! that ends, or takes the yield back, leaves no place at any channel.
//!
//! **Protocol.** The future is polled by the worker that dispatches the yield, and then by each
//! thread that wakes it, outside of all locks of channels. A thread that finds another one polling
//! leaves word, and the other polls again. When the yield is wanted no longer, the future is
//! dropped.
//!
//! **A value is not lost with its completion.** A completion that the process does not take, for
//! it has taken the yield back or has ended, is dropped with what it brings. So it brings a
//! [`Received`], which gives its value back to the channel then.

use crate::ends::{Receiver, Sender};
use crate::error::SendError;
use ganger_proc_api::{Command, CommandError, Completer, EndWatch, Payload, TypedCommand};
use ganger_sync::failing;
use ganger_sync::sync::{Mutex, lock};
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

type Wait = Pin<Box<dyn Future<Output = Result<Payload, CommandError>> + Send>>;

/// What a step yields to wait for: see [`Receiver::receiving`], [`Sender::sending`] and
/// [`waiting`]. Its completion brings an `A`.
#[must_use = "a command does nothing until it is asked for: `out.ask(command, tag)`"]
pub struct Waiting<A> {
    wait: Wait,
    answer: PhantomData<fn() -> A>,
}

/// Receives: see [`Receiver::receiving`].
pub type Receiving<T> = Waiting<Received<T>>;

/// Sends: see [`Sender::sending`].
pub type Sending<T> = Waiting<Result<(), SendError<T>>>;

impl<A: Send + 'static> Waiting<A> {
    fn new(wait: impl Future<Output = Result<A, CommandError>> + Send + 'static) -> Self {
        Self {
            wait: Box::pin(async { wait.await.map(Payload::any) }),
            answer: PhantomData,
        }
    }
}

/// A future as a command, for a step: the completion brings what the future gives. So a step waits
/// for a [`select`](crate::select) over channels that the future owns.
///
/// The future is polled by the threads that wake it, so it must not block. It is dropped when the
/// process ends or takes the yield back. What it gives is dropped when that happens later.
///
/// ```
/// use ganger_channel::{Receiver, channel, select, waiting};
/// use ganger_proc_api::StepOutput;
///
/// fn first_of(out: &mut StepOutput, a: Receiver<u64>, b: Receiver<u64>) {
///     let first = async move { select().recv(&a, Result::ok).recv(&b, Result::ok).await };
///     out.ask(waiting(first), 1); // its completion brings an `Option<u64>`
/// }
/// # let (a, b) = (channel(1).1, channel(1).1);
/// # first_of(&mut StepOutput::new(), a, b);
/// ```
pub fn waiting<F>(future: F) -> Waiting<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    Waiting::new(async { Ok(future.await) })
}

impl<A: Send + 'static> TypedCommand for Waiting<A> {
    type Answer = A;

    fn into_command(self) -> Command {
        let wait = self.wait;
        ganger_sched::command_of(move |completer| Yielded::begin(wait, completer))
    }
}

impl<A> fmt::Debug for Waiting<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Receiver<T> {
    /// As [`recv`](Self::recv), for a step: the completion brings a [`Received`]. It is the error
    /// [`RecvError::Closed`](crate::RecvError::Closed) when nothing is received any more.
    ///
    /// ```
    /// use ganger_channel::channel;
    /// use ganger_proc_api::{BoxError, Event, process_fn};
    /// use ganger_sched::Scheduler;
    ///
    /// let scheduler = Scheduler::start_default()?;
    /// let (sender, receiver) = channel(0);
    /// let process = scheduler.spawn(process_fn(move |_, events, out| {
    ///     match events.next() {
    ///         None => drop(out.ask(receiver.receiving(), 7)),
    ///         Some(Event::Completion(it)) => {
    ///             let received = it.take::<ganger_channel::Received<u64>>()?;
    ///             out.done(received.into_inner());
    ///         }
    ///         Some(_) => {}
    ///     }
    ///     Ok(())
    /// }))?;
    /// sender.send_blocking(42_u64)?;
    /// assert_eq!(process.wait().take::<u64>()?, 42);
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn receiving(&self) -> Receiving<T> {
        let receiver = self.clone();
        Waiting::new(async move {
            let mut recv = receiver.recv();
            let received = poll_fn(|context| recv.poll_numbered(context)).await;
            drop(recv);
            match received {
                Ok(value) => Ok(Received {
                    value: Some(value),
                    from: receiver,
                }),
                Err(closed) => Err(CommandError::Failed(closed.into())),
            }
        })
    }
}

impl<T: Send + 'static> Sender<T> {
    /// As [`send`](Self::send), for a step: the completion brings a `Result<(), SendError<T>>`, so
    /// that the value comes back when the channel is closed.
    pub fn sending(&self, value: T) -> Sending<T> {
        let sender = self.clone();
        Waiting::new(async move { Ok(sender.send(value).await) })
    }
}

/// A value that a yield has received. Dropped without [`into_inner`](Self::into_inner), it gives
/// the value back: it is the next that the channel gives.
pub struct Received<T> {
    value: Option<(u64, T)>,
    from: Receiver<T>,
}

impl<T> Received<T> {
    /// The value.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        match self.value.take() {
            Some((_, value)) => value,
            None => unreachable!("only this takes it out"),
        }
    }
}

impl<T> Drop for Received<T> {
    fn drop(&mut self) {
        if let Some((number, value)) = self.value.take() {
            self.from.0.give_back(number, value);
        }
    }
}

impl<T> fmt::Debug for Received<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").finish_non_exhaustive()
    }
}

/// Polls. The thread that wakes has nothing to do with a panic of the future.
fn contained(wait: &mut Wait, context: &mut Context<'_>) -> Poll<Result<Payload, CommandError>> {
    let poll = || failing::apart(|| wait.as_mut().poll(context));
    catch_unwind(AssertUnwindSafe(poll)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a message");
        Poll::Ready(Err(CommandError::Panicked(text.into())))
    })
}

/// A yield that waits for its future.
struct Yielded(Mutex<Stage>);

enum Stage {
    Waits(Parts),
    /// A thread polls the future.
    Polled {
        again: bool,
        is_unwanted: bool,
    },
    Over,
}

struct Parts {
    wait: Wait,
    completer: Completer,
    /// Tells of the end of the yield.
    watch: Option<EndWatch>,
}

const POLLED: Stage = Stage::Polled {
    again: false,
    is_unwanted: false,
};

impl Yielded {
    fn begin(mut wait: Wait, completer: Completer) {
        let this = Arc::new(Self(Mutex::new(POLLED)));
        let waker = Waker::from(Arc::clone(&this));
        if let Poll::Ready(result) = wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            return completer.finish(result);
        }
        let weak = Arc::downgrade(&this);
        let watch = completer.on_end(move || {
            if let Some(this) = weak.upgrade() {
                this.give_up();
            }
        });
        // A process that has ended waits no longer.
        if watch.is_some()
            && let Some(parts) = this.rest(Parts {
                wait,
                completer,
                watch,
            })
        {
            this.poll(parts, &waker);
        }
    }

    /// Polls until the future has looked at all that has woken it.
    fn poll(&self, mut parts: Parts, waker: &Waker) {
        let mut context = Context::from_waker(waker);
        loop {
            if let Poll::Ready(result) = contained(&mut parts.wait, &mut context) {
                *lock(&self.0) = Stage::Over;
                drop(parts.watch);
                parts.completer.finish(result);
                return;
            }
            match self.rest(parts) {
                Some(again) => parts = again,
                None => return,
            }
        }
    }

    /// The future is not ready. Gives it back when it has been woken meanwhile.
    fn rest(&self, parts: Parts) -> Option<Parts> {
        let mut stage = lock(&self.0);
        match &*stage {
            Stage::Polled {
                is_unwanted: false,
                again: false,
            } => {
                *stage = Stage::Waits(parts);
                None
            }
            Stage::Polled {
                is_unwanted: false, ..
            } => {
                *stage = POLLED;
                Some(parts)
            }
            _ => {
                *stage = Stage::Over;
                drop(stage);
                drop(parts);
                None
            }
        }
    }

    /// The yield is wanted no longer.
    fn give_up(&self) {
        let mut stage = lock(&self.0);
        if let Stage::Polled { is_unwanted, .. } = &mut *stage {
            *is_unwanted = true;
            return;
        }
        let before = mem::replace(&mut *stage, Stage::Over);
        drop(stage);
        drop(before);
    }
}

impl Wake for Yielded {
    fn wake(self: Arc<Self>) {
        let mut stage = lock(&self.0);
        match &mut *stage {
            Stage::Polled { again, .. } => *again = true,
            Stage::Over => {}
            Stage::Waits(_) => {
                let before = mem::replace(&mut *stage, POLLED);
                drop(stage);
                if let Stage::Waits(parts) = before {
                    self.poll(parts, &Waker::from(Arc::clone(&self)));
                }
            }
        }
    }
}
