//! Holding on to a process: to send to it, and to learn how it ended.

use crate::probe::{Decide, Decider};
use crate::process::exit_slot::Abandoned;
use crate::process::process_box::ProcessBox;
use crate::progress::report::NotStarted;
use crate::runtime::cell::Task;
use crate::runtime::here;
use crate::runtime::shared::Shared;
use crate::send::lots::{self, SendAllError};
use crate::submit::Birth;
use ganger_proc_api::{ExitReason, Message, Payloads, Pid, SubmitError, SubmitErrorKind, Symbol};
use ganger_sync::refuse_to_wait_in_driver;
use ganger_wait::watch::{self, END};
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Reaches a process without a look-up. Cloning it is cheap.
///
/// An `Address<M>` belongs to a process with messages of type `M`: an [`Actor`]. A plain `Address`,
/// short for `Address<Message>`, belongs to any process, and sends a [`Message`].
///
/// A process of another scheduler, or another node, has an address as well, if something
/// [connects](crate::Builder::remote) the two: messages go by the router, whose refusals are the
/// errors of the sends.
///
/// An address keeps a few bytes of the process alive after its end, and the memory of the
/// scheduler, as a [`Handle`](crate::Handle) does. A factory or a hook, kept by the scheduler
/// itself, should have a [`WeakHandle`](crate::WeakHandle) and a PID.
///
/// [`Actor`]: ganger_proc_api::Actor
#[repr(transparent)]
pub struct Address<M = Message> {
    pub(crate) task: Task,
    /// An address takes messages and holds none.
    takes: PhantomData<fn(M)>,
}

impl<M> Address<M> {
    pub(crate) fn new(task: Task) -> Self {
        let takes = PhantomData;
        Self { task, takes }
    }

    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.target()
    }

    /// Returns whether the process takes nothing any more: it is being closed, or has ended. Once
    /// `true`, it stays `true`. The end of a process of another scheduler is not known here: a
    /// monitor tells.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.task.takes_nothing()
    }

    /// Returns whether both addresses lead to the same process. Two processes with the same PID,
    /// after each other, are not the same.
    #[must_use]
    pub fn is_same<N>(&self, other: &Address<N>) -> bool {
        let stand_in = || self.task.is_stand_in() && other.task.is_stand_in();
        Arc::ptr_eq(&self.task, &other.task) || stand_in() && self.pid() == other.pid()
    }

    /// Returns the same address, without a promised type of messages.
    #[must_use]
    pub fn untyped(&self) -> &Address {
        // SAFETY: an address is a task and nothing else, whatever the type of messages is.
        unsafe { &*ptr::from_ref(self).cast() }
    }
}

impl Address {
    /// Returns a waker of the process: see [`Context::waker`](ganger_proc_api::Context::waker).
    #[must_use]
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.task).into_waker()
    }
}

impl Address {
    /// Sends messages, in order, at a lower price than by a [`send`](Self::send) each. Never
    /// blocks, unless the iterator does. O(n).
    ///
    /// The messages go into the mailbox in lots of 128, each by one atomic operation. So the
    /// process may get the first messages before the iterator has ended, and messages of other
    /// senders between two lots. Messages that the iterator itself sends to the process overtake
    /// their lot, and the iterator must not wait for an answer to a message of its lot. If the
    /// iterator panics, the lots before have been sent, and the messages since are dropped.
    ///
    /// # Errors
    /// [`SendAllError`], with all unsent messages inside, when the process has ended, when its
    /// mailbox becomes full, or when other senders wait for room in it. The messages before them
    /// have been sent. The call then draws the iterator to its end, so the iterator must be finite.
    /// Without any messages the call succeeds.
    ///
    /// ```
    /// use ganger_proc_api::{
    ///     BoxError, Context, Event, Events, ExitReason, Message, Process, StepOutput,
    ///     StepResult,
    /// };
    /// use ganger_sched::Scheduler;
    ///
    /// struct Sum(u64);
    ///
    /// impl Process for Sum {
    ///     fn step(
    ///         &mut self,
    ///         _: &Context,
    ///         events: &mut Events<'_>,
    ///         out: &mut StepOutput,
    ///     ) -> StepResult {
    ///         for event in events {
    ///             if let Event::Message(message) = event {
    ///                 match message.payloads.first().and_then(|number| number.as_u64()) {
    ///                     Some(number) => self.0 += number,
    ///                     None => out.done(self.0),
    ///                 }
    ///             }
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let scheduler = Scheduler::builder().start()?;
    /// let sum = scheduler.spawn(Sum(0))?;
    /// let numbers = (1..=100_u64).map(|n| Message::new("number", n));
    /// sum.address().send_all(numbers.chain([Message::new("end", ())]))?;
    /// assert!(matches!(sum.wait(), ExitReason::Done(n) if n.as_u64() == Some(5_050)));
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn send_all(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<(), SendAllError> {
        lots::send_all(&self.task, messages)
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.task))
    }
}

impl<M> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.pid()).finish()
    }
}

/// The submitter's hold on a process: waits for its end.
///
/// Each process has a single handle, because the exit reason is handed out by value. The handle is
/// a future. Dropping it leaves the process alone, and its failure is
/// [reported](crate::Builder::on_failure) where nothing else watches the process.
pub struct ProcessHandle<M = Message> {
    /// Not counted: see `exit_slot.rs`.
    address: ManuallyDrop<Address<M>>,
}

impl Shared {
    /// Starts a process: see [`begin`](Self::begin).
    pub(crate) fn submit(
        self: &Arc<Self>,
        birth: Birth<'_>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
    ) -> Result<ProcessHandle, SubmitError> {
        self.submit_with(birth, process, method, input, |_| Ok(()))
    }

    /// Submits as [`submit`](Self::submit) does, and calls `hook` when the process has its PID,
    /// before its `init`. An error of the hook has the process and its input come back.
    #[inline]
    pub(crate) fn submit_with(
        self: &Arc<Self>,
        birth: Birth<'_>,
        process: ProcessBox,
        method: Symbol,
        input: Payloads,
        hook: impl FnOnce(&Task) -> Result<(), SubmitErrorKind>,
    ) -> Result<ProcessHandle, SubmitError> {
        let (_, task) = self.begin(birth, process, method, input, |_| (), hook)?;
        // SAFETY: this is the only handle, and nothing else abandons the slot of a started process.
        Ok(unsafe { ProcessHandle::new(task) })
    }
}

impl<M> ProcessHandle<M> {
    /// Makes the handle of a process, without a counted reference.
    ///
    /// # Safety
    /// A process has one handle, and its exit slot has not been abandoned.
    pub(crate) unsafe fn new(task: ManuallyDrop<Task>) -> Self {
        let address = Address::new(ManuallyDrop::into_inner(task));
        Self {
            address: ManuallyDrop::new(address),
        }
    }

    /// Returns the process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.address.pid()
    }

    /// Returns the process's address, to be cloned and given away.
    #[must_use]
    pub fn address(&self) -> &Address<M> {
        &self.address
    }

    /// Returns whether the process has ended and [`wait`](Self::wait) returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.address.task.exit.is_filled()
    }

    /// Blocks until the process has ended, its PID is gone, and `Lifecycle::on_complete` has been
    /// called.
    ///
    /// Must not be called from a step: its worker would wait.
    ///
    /// In a scheduler that has not been started, nothing runs: then the call does not wait, and the
    /// reason is `Failed` with [`NotStarted`] inside. The process is left alone.
    ///
    /// # Panics
    /// When the handle has been polled, as a future, until it was ready. When the process has not
    /// ended, and this thread is in a [`Driver`](crate::Driver): the wait would never end.
    #[track_caller]
    pub fn wait(self) -> ExitReason {
        if !self.is_finished() {
            refuse_to_wait_in_driver();
            Decider::refuse_to_block("wait", "`Rt::wait`");
            if self.address.task.shared.is_unstarted() {
                return ExitReason::Failed(NotStarted.into());
            }
        }
        let task = &self.address.task;
        let _asked = watch::awaits(END, (task.pid(), task.shared.number));
        loop {
            // SAFETY: this is the handle.
            if let Some(reason) = unsafe { self.address.task.wait_for_end(None) } {
                return reason;
            }
        }
    }

    /// Waits as [`wait`](Self::wait) does, but gives up after `timeout`. The call waits also in a
    /// scheduler that has not been started, because another thread may start it.
    ///
    /// # Errors
    /// Gives the handle back when the process has not ended by then.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_timeout(self, timeout: Duration) -> Result<ExitReason, Self> {
        if !self.is_finished() {
            refuse_to_wait_in_driver();
        }
        let task = &self.address.task;
        let _asked = watch::awaits(END, (task.pid(), task.shared.number));
        // SAFETY: this is the handle.
        let reason = unsafe { task.wait_for_end(Some(timeout)) };
        reason.ok_or(self)
    }
}

impl ProcessHandle {
    /// Returns the handle of the same process, with messages of type `M`.
    pub(crate) fn with_messages<M>(self) -> ProcessHandle<M> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the address is not used again: this handle is not dropped.
        let address = unsafe { ManuallyDrop::take(&mut this.address) };
        let address = ManuallyDrop::new(Address::new(address.task));
        ProcessHandle { address }
    }
}

/// # Panics
/// Polling it again after it was ready panics.
impl<M> Future for ProcessHandle<M> {
    type Output = ExitReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExitReason> {
        if watch::is_on() && !self.is_finished() {
            let waker = self.watched(context.waker());
            // SAFETY: this is the only handle, and `&mut` excludes other uses.
            return unsafe { self.address.task.poll_end(&Context::from_waker(&waker)) };
        }
        // SAFETY: this is the only handle, and `&mut` excludes other uses.
        unsafe { self.address.task.poll_end(context) }
    }
}

impl<M> ProcessHandle<M> {
    /// Wraps the waker, so watchers know that its process waits for the end of this process. A
    /// handle may live on after its process has ceased to wait for the end. So the wait holds until
    /// the next turn of the waiter, and while the waiter waits for nothing else.
    #[cold]
    #[inline(never)]
    fn watched(&self, waker: &Waker) -> Waker {
        let holds = here::holds();
        let holds = move || holds.as_ref().is_none_or(|holds| holds());
        let task = &self.address.task;
        watch::awaits_by(waker, END, (task.pid(), task.shared.number), holds)
    }
}

impl<M> Drop for ProcessHandle<M> {
    fn drop(&mut self) {
        // The slot's content is dropped last: its destructor may panic.
        // SAFETY: this is the handle, and it does nothing more with the slot.
        let abandoned = unsafe { self.address.task.abandon() };
        let _rest = match abandoned {
            Abandoned::Alive(waker) => (waker, None),
            Abandoned::Unwatched(reason) => {
                self.address.task.report_end(&reason, None);
                // SAFETY: this handle has the reference of the process, which has ended, and is not
                // used again.
                unsafe { ManuallyDrop::drop(&mut self.address) };
                (None, Some(reason))
            }
            Abandoned::Ended(reason) => {
                // SAFETY: this handle has the reference of the process, which has ended, and is not
                // used again.
                unsafe { ManuallyDrop::drop(&mut self.address) };
                (None, reason)
            }
        };
    }
}

impl<M> fmt::Debug for ProcessHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHandle")
            .field("pid", &self.pid())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

impl<M> AsRef<Address<M>> for ProcessHandle<M> {
    fn as_ref(&self) -> &Address<M> {
        &self.address
    }
}

impl<M> AsRef<Self> for Address<M> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<M> From<&ProcessHandle<M>> for Address<M> {
    fn from(handle: &ProcessHandle<M>) -> Self {
        Self::new(Arc::clone(&handle.address.task))
    }
}
