//! Sends that wait for room in a limited mailbox: of a thread, with or without a deadline, and of a
//! task.

use crate::api::handle::Handle;
use crate::api::process_handle::Address;
use crate::base::contain::{contain_and_report, discard};
use crate::blocking::{block_if_replaced, may_wait_for};
use crate::limits::waiters::{Entered, Left, Look, Ticket, Waiters};
use crate::probe::{Decide, Decider};
use crate::runtime::cell::ProcessCell;
use crate::runtime::cell::Task;
use crate::runtime::local;
use ganger_proc_api::{Envelope, Message, Pid, SendError, SendErrorKind};
use ganger_sync::Parker;
use ganger_wait::watch::{self, Asked, MAILBOX};
use std::fmt;
use std::future::Future;
use std::iter;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

type Refused = (SendErrorKind, Message);

impl<M: Send + 'static> Address<M> {
    /// Sends a message, and blocks until the mailbox has room for it.
    ///
    /// The sender waits when the mailbox holds as many messages as
    /// [`Spawner::mailbox_limit`](crate::Spawner::mailbox_limit) or
    /// [`Builder::mailbox_limit`](crate::Builder::mailbox_limit) allows, or other senders wait:
    /// waiting senders are served in the order of their calls. They are served when a quarter of
    /// the limit is left in the mailbox, or the process takes nothing more. Without a limit the
    /// call is [`send`](Self::send).
    ///
    /// A step of the receiver that blocks its thread may keep senders waiting despite some room
    /// until it returns, unless it blocks inside of `Context::blocking`. So a step must announce a
    /// wait for one of its senders by `Context::blocking`.
    ///
    /// From inside a step the call blocks the step, and another thread takes the worker's place
    /// meanwhile, as with `Context::blocking`. The call is refused with `Full` when no thread is
    /// left for the worker's place ([`Builder::max_spares`](crate::Builder::max_spares), or the
    /// system refuses a thread while others wait already), for the receiver might then have no
    /// thread to run on. The same refusal meets a step that sends to its own process. All this
    /// holds for steps of any scheduler, and for a `close` on another thread than a worker during a
    /// [stop](crate::Handle::stop).
    ///
    /// A stop of the receiver's scheduler ends the wait. So does a termination of the process whose
    /// step waits, and a cancellation not yet shown to a step. Two processes with full mailboxes
    /// that send to each other in this way wait until then. A step that can't exclude this uses
    /// [`send_timeout`](Self::send_timeout), or [`send`](Self::send) and tries again in a later
    /// step.
    ///
    /// # Errors
    /// [`SendError`], with the message inside: `Ended` when the process has ended, also during the
    /// wait; `Stopping` when the call would wait and the scheduler stops; `NotStarted` when a
    /// thread outside of a step would wait and the scheduler has not been started; `Cancelled` when
    /// the process whose step waits is asked to finish; `Full` from a step that must not wait.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     BoxError, Context, Event, Events, Message, Process, StepOutput, StepResult,
    /// };
    /// use ganger_sched::Scheduler;
    ///
    /// struct Slow(u64);
    ///
    /// impl Process for Slow {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         events: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         if let Some(Event::Message(_)) = events.next() {
    ///             self.0 += 1;
    ///             out.step_again();
    ///         }
    ///         if self.0 == 100 {
    ///             out.done(self.0);
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().mailbox_limit(2).start()?;
    /// let slow = scheduler.spawn(Slow(0))?;
    /// for n in 0..100_u64 {
    ///     slow.address().send_blocking(Message::new("work", n))?;
    /// }
    /// slow.wait();
    /// # Ok::<(), BoxError>(())
    /// ```
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn send_blocking(&self, message: M) -> Result<(), SendError> {
        self.send_within(message, None)
    }

    /// Sends as [`send_blocking`](Self::send_blocking) does, but blocks for at most `timeout`, and
    /// with zero not at all.
    ///
    /// # Errors
    /// As [`send_blocking`](Self::send_blocking), and `Timeout`, with the message inside, when
    /// there was no room for it by then.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn send_timeout(&self, message: M, timeout: Duration) -> Result<(), SendError> {
        self.send_within(message, Some(timeout))
    }

    /// Sends as [`send_blocking`](Self::send_blocking) does, as a future, on any executor. The
    /// future sends nothing until it is polled.
    ///
    /// A future that is dropped before it is ready takes its message along, except for an accepted
    /// message, which is delivered. [`SendAsync::into_envelope`] returns the message instead. The
    /// future keeps no other sender waiting, polled or not. Polling it never blocks, also inside of
    /// a step.
    ///
    /// # Errors
    /// The future's, with the message inside: `Ended` when the process has ended, also while this
    /// waited; `Stopping` when it would wait and the scheduler stops.
    ///
    /// ```
    /// use ganger_proc_api::Message;
    /// use ganger_sched::Address;
    ///
    /// async fn all(address: &Address, numbers: &[u64]) -> Result<(), ganger_proc_api::SendError> {
    ///     for &n in numbers {
    ///         address.send_async(Message::new("work", n)).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn send_async(&self, message: M) -> SendAsync {
        let envelope = Message::of(message).to(self.task.target());
        SendAsync {
            stage: Stage::Unsent(Arc::clone(&self.task), envelope),
        }
    }

    #[cfg_attr(feature = "sim", track_caller)]
    fn send_within(&self, message: M, timeout: Option<Duration>) -> Result<(), SendError> {
        let delivered = self.task.deliver_within(Message::of(message), timeout);
        delivered.map_err(|(kind, message)| SendError::new(kind, message.to(self.task.target())))
    }
}

impl Handle {
    /// Sends an envelope by PID, and blocks until the mailbox has room for it: see
    /// [`Address::send_blocking`]. For an envelope for another scheduler, the call waits for the
    /// router, if the router says when it has room
    /// ([`EnvelopeReceiver::room`](ganger_proc_api::EnvelopeReceiver::room)), as links to other
    /// nodes do. For other routers the call is the same as [`send`](Self::send).
    ///
    /// # Errors
    /// [`SendError`], with the envelope inside, when it was not accepted; `Ended`, `Stopping` or
    /// `Cancelled` when the wait was ended; `Full` from inside a step that must not wait, as for
    /// [`Address::send_blocking`].
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn send_blocking(&self, envelope: Envelope) -> Result<(), SendError> {
        self.send_within(envelope, None)
    }

    /// Sends as [`send_blocking`](Self::send_blocking) does, but blocks for at most `timeout`, and
    /// with zero not at all.
    ///
    /// # Errors
    /// As [`send_blocking`](Self::send_blocking), and `Timeout`, with the envelope inside, when
    /// there was no room for it by then.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn send_timeout(&self, envelope: Envelope, timeout: Duration) -> Result<(), SendError> {
        self.send_within(envelope, Some(timeout))
    }

    /// Sends as [`send_blocking`](Self::send_blocking) does, as a future: see
    /// [`Address::send_async`]. The PID is looked up when it is polled first.
    ///
    /// # Errors
    /// The future's, with the envelope inside, when it was not accepted; `Ended` or `Stopping` when
    /// the wait was ended.
    pub fn send_async(&self, envelope: Envelope) -> SendAsync {
        SendAsync {
            stage: Stage::Unrouted(self.clone(), envelope),
        }
    }

    #[cfg_attr(feature = "sim", track_caller)]
    fn send_within(&self, envelope: Envelope, timeout: Option<Duration>) -> Result<(), SendError> {
        let Some(task) = self.shared.find(envelope.target) else {
            return self.shared.route_within(envelope, timeout);
        };
        let delivered = task.deliver_within(envelope.message, timeout);
        delivered.map_err(|(kind, message)| SendError::new(kind, message.to(envelope.target)))
    }
}

/// A send that waits for room; see [`Address::send_async`].
///
/// # Panics
/// Polling it again after it was ready panics.
#[must_use = "a future sends nothing until it is polled"]
pub struct SendAsync {
    stage: Stage,
}

enum Stage {
    /// The PID has not been looked up yet, or the router has no room.
    Unrouted(Handle, Envelope),
    Unsent(Task, Envelope),
    Waiting(Waiter, Pid),
    Done,
}

impl SendAsync {
    /// Takes the envelope back, if it has not been sent. `None` for an accepted envelope, and after
    /// a refusal, whose error has the envelope.
    #[must_use = "the envelope is here, and nowhere else"]
    pub fn into_envelope(self) -> Option<Envelope> {
        match self.stage {
            Stage::Unrouted(_, envelope) | Stage::Unsent(_, envelope) => Some(envelope),
            Stage::Waiting(waiter, target) => waiter.leave().map(|message| message.to(target)),
            Stage::Done => None,
        }
    }
}

impl Future for SendAsync {
    type Output = Result<(), SendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let stage = &mut self.get_mut().stage;
        if let Stage::Waiting(waiter, target) = stage {
            let target = *target;
            let sent = match waiter.poll(context.waker().clone()) {
                Look::Waiting => return Poll::Pending,
                Look::Accepted => Ok(()),
                Look::Refused(kind, left) => {
                    let message = waiter.task.without_waker(left);
                    let kind = waiter.task.refined(kind);
                    Err(SendError::new(kind, message.to(target)))
                }
            };
            *stage = Stage::Done;
            return Poll::Ready(sent);
        }
        let (task, envelope) = match mem::replace(stage, Stage::Done) {
            Stage::Unrouted(handle, envelope) => match handle.shared.find(envelope.target) {
                Some(task) => (task, envelope),
                None => {
                    let refused = match handle.shared.route(envelope) {
                        Err(refused) if refused.kind == SendErrorKind::Full => refused,
                        result => return Poll::Ready(result),
                    };
                    return await_room(stage, handle, refused.into_envelope(), context);
                }
            },
            Stage::Unsent(task, envelope) => (task, envelope),
            Stage::Waiting(..) | Stage::Done => {
                panic!("a SendAsync was polled after it had completed")
            }
        };
        let Envelope { target, message } = envelope;
        let refused = |(kind, message): Refused| SendError::new(kind, message.to(target));
        let message = match task.deliver(message) {
            Err((SendErrorKind::Full, message)) => message,
            result => return Poll::Ready(result.map_err(refused)),
        };
        if task.is_stand_in() {
            let shared = Arc::clone(&task.shared);
            return await_room(stage, Handle { shared }, message.to(target), context);
        }
        // To clone the waker is a call of users' code. If it panics, the envelope is still here.
        *stage = Stage::Unsent(task, message.to(target));
        let waker = context.waker().clone();
        let Stage::Unsent(task, Envelope { message, .. }) = mem::replace(stage, Stage::Done) else {
            unreachable!("it has just been put there");
        };
        match task.wait_for_room(message, waker) {
            Ok(None) => Poll::Ready(Ok(())),
            Ok(Some(waiter)) => {
                *stage = Stage::Waiting(waiter, target);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(refused(error))),
        }
    }
}

/// Has the task woken when the router has room for the envelope, or gives up at once.
fn await_room(
    stage: &mut Stage,
    handle: Handle,
    envelope: Envelope,
    context: &Context<'_>,
) -> Poll<Result<(), SendError>> {
    // To clone the waker is a call of users' code. If it panics, the envelope is still here.
    *stage = Stage::Unrouted(handle, envelope);
    let waker = context.waker().clone();
    if let Stage::Unrouted(handle, envelope) = stage
        && handle.shared.awaits_room(envelope, waker)
    {
        return Poll::Pending;
    }
    let Stage::Unrouted(_, envelope) = mem::replace(stage, Stage::Done) else {
        unreachable!("it has just been put there");
    };
    Poll::Ready(Err(SendError::new(SendErrorKind::Full, envelope)))
}

/// Nothing in it is pinned.
impl Unpin for SendAsync {}

impl fmt::Debug for SendAsync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match &self.stage {
            Stage::Unrouted(_, envelope) | Stage::Unsent(_, envelope) => Some(envelope.target),
            Stage::Waiting(_, target) => Some(*target),
            Stage::Done => None,
        };
        f.debug_struct("SendAsync")
            .field("target", &target)
            .field("is_waiting", &matches!(self.stage, Stage::Waiting(..)))
            .finish_non_exhaustive()
    }
}

/// A message waiting for room. Dropping it takes the message back, unless it has been accepted.
struct Waiter {
    task: Task,
    ticket: Ticket,
    /// While the program watches for deadlocks.
    _asked: Asked,
}

impl Waiter {
    fn poll(&self, mut waker: Waker) -> Look<Message> {
        let task = &self.task;
        let look = self.waiters().poll(&task.room, &self.ticket, &mut waker);
        discard(task.pid(), task.shared.own_counters(), waker);
        look
    }

    /// Takes the message back; none when it has been accepted.
    fn leave(&self) -> Option<Message> {
        let left = self.waiters().leave(&self.task.room, &self.ticket)?;
        Some(self.task.without_waker(left))
    }

    fn waiters(&self) -> &Waiters<Message> {
        &self.task.shared.rooms.waiters
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

impl ProcessCell {
    /// Delivers a message after all, or has it wait for room.
    fn wait_for_room(
        self: &Task,
        message: Message,
        waker: Waker,
    ) -> Result<Option<Waiter>, Refused> {
        let Some(limit) = self.limit() else {
            return Err((SendErrorKind::Full, message));
        };
        match (self.shared.rooms.waiters).enter(&self.room, limit, message, waker) {
            Entered::Place(left) => {
                let message = self.without_waker(left);
                let placed = self.deliver_placed(message);
                placed
                    .map(|()| None)
                    .map_err(|message| (self.closed(), message))
            }
            Entered::Refused(kind, left) => Err((self.refined(kind), self.without_waker(left))),
            Entered::Waiting(ticket) => {
                let task = Arc::clone(self);
                let _asked = watch::awaits(MAILBOX, (task.pid(), task.shared.number));
                Ok(Some(Waiter {
                    task,
                    ticket,
                    _asked,
                }))
            }
        }
    }

    /// Discards the waker of a sender that waits no more, and returns the message. A panicking
    /// destructor of a waker costs no sender its message.
    fn without_waker(&self, (message, waker): Left<Message>) -> Message {
        discard(self.pid(), self.shared.own_counters(), waker);
        message
    }

    /// Delivers a message, and blocks until the mailbox has room for it, or `timeout` has passed.
    #[cfg_attr(feature = "sim", track_caller)]
    fn deliver_within(
        self: &Task,
        message: Message,
        timeout: Option<Duration>,
    ) -> Result<(), Refused> {
        let message = match self.deliver(message) {
            Err((SendErrorKind::Full, message)) => message,
            result => return result,
        };
        if self.is_stand_in() {
            return self.await_room_away(message, timeout);
        }
        if timeout == Some(Duration::ZERO) {
            return Err((SendErrorKind::Timeout, message));
        }
        if !may_wait_for(&self.shared, self.pid()) {
            return Err((SendErrorKind::Full, message));
        }
        Decider::refuse_to_block("a send that waits for room", "`send`, or `send_async`");
        let thread = Arc::new(Parker::new());
        let waker = Waker::from(Arc::clone(&thread));
        let own = local::own_process();
        let own = own.as_ref();
        // The wait of a step ends with its process.
        if timeout.is_none() && own.is_none() && self.shared.is_unstarted() {
            return Err((SendErrorKind::NotStarted, message));
        }
        let _waits = own.map(|own| {
            let steps = &own.shared.rooms.waiting_steps;
            steps.enter(own.pid().id(), waker.clone())
        });
        let is_called_back = || own.is_some_and(|own| own.state.is_called_back());
        if is_called_back() {
            // A stop cancels all.
            let kind = if self.shared.shutdown.is_stopping() {
                SendErrorKind::Stopping
            } else {
                SendErrorKind::Cancelled
            };
            return Err((kind, message));
        }
        let Some(waiter) = self.wait_for_room(message, waker)? else {
            return Ok(());
        };
        // The acceptance wakes the thread, and so does the end of either process, or a stop.
        let has_waited = block_if_replaced(|| match timeout {
            None => thread.park(),
            Some(timeout) => {
                if !thread.park_timeout(timeout) {
                    // There may be room, but less than the process's worker waits for.
                    self.serve_waiters();
                }
            }
        });
        let Some(message) = waiter.leave() else {
            return Ok(());
        };
        let kind = if self.room.is_closed() {
            self.closed()
        } else if self.shared.shutdown.is_stopping() {
            SendErrorKind::Stopping
        } else if is_called_back() {
            SendErrorKind::Cancelled
        } else if has_waited {
            SendErrorKind::Timeout
        } else {
            SendErrorKind::Full
        };
        Err((kind, message))
    }

    /// Waits for room as [`deliver_within`](Self::deliver_within) does, where the router has
    /// refused the message.
    #[cfg_attr(feature = "sim", track_caller)]
    fn await_room_away(&self, message: Message, timeout: Option<Duration>) -> Result<(), Refused> {
        let envelope = message.to(self.target());
        let sent = self.shared.await_room(envelope, timeout);
        sent.map_err(|refused| (refused.kind, refused.into_envelope().message))
    }

    /// Puts waiting messages into the new room.
    #[cold]
    pub(crate) fn serve_waiters(self: &Task) {
        let Some(limit) = self.limit() else {
            return;
        };
        let waiters = &self.shared.rooms.waiters;
        let counters = self.shared.own_counters();
        let serve_next = || waiters.next(&self.room, limit, |message| self.deliver_placed(message));
        // A sender woken before the last is served finds no room, and waits again. When a sender
        // serves, the process may take more meanwhile; the limit bounds this sender's work.
        let wakers: Vec<_> = iter::from_fn(serve_next).take(limit).collect();
        for waker in wakers {
            contain_and_report("waker", self.pid(), counters, || waker.wake());
        }
    }

    /// Notifies the senders waiting for room in the closed mailbox.
    pub(crate) fn refuse_waiters(&self) {
        if self.limit().is_some() {
            let counters = self.shared.own_counters();
            self.shared.rooms.waiters.close(&self.room, |waker| {
                contain_and_report("waker", self.pid(), counters, || waker.wake());
            });
        }
    }
}
