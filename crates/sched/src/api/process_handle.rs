//! Holding on to a process: to send to it, and to learn how it ended.

use crate::core::cell::Task;
use crate::core::item::Item;
use crate::probe::{Decide, Decider};
use crate::process::exit_slot::Abandoned;
use ganger_proc_api::{Event, ExitReason, Message, Pid, SendError};
use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Reaches a process without a look-up. Cloning it is cheap.
///
/// It keeps a few bytes of the process alive after its end, and the memory of the scheduler, as a
/// [`Handle`](crate::Handle) does. A factory or a hook, which the scheduler itself keeps, is better
/// off with a [`WeakHandle`](crate::WeakHandle) and a PID.
#[derive(Clone)]
pub struct Address {
    pub(crate) task: Task,
}

impl Address {
    pub(crate) fn new(task: Task) -> Self {
        Self { task }
    }

    /// The process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.task.pid
    }

    /// Sends a message. Never blocks: see [`send_blocking`](Self::send_blocking) for a send that
    /// waits for room.
    ///
    /// # Errors
    /// [`SendError`], with the message inside, when the process has ended, when its mailbox is
    /// full, or when other senders wait for room in it.
    #[inline]
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        // The message is made in its node, so that it is copied no more.
        let message = self.task.state.single(Item::Event(Event::Message(message)));
        self.task.deliver_in_node(message)
    }

    /// Sends a control message, which the process gets as [`Event::Control`]. Never blocks. Takes
    /// one more allocation than [`send`](Self::send).
    ///
    /// It overtakes the messages and completions that wait in the mailbox, and stays behind earlier
    /// system events: control messages, cancellations and upgrades. A process that it wakes runs
    /// before others that are ready; one that is queued already keeps its place.
    ///
    /// # Errors
    /// [`SendError`], with the message inside, when the process has ended, or when as many control
    /// messages wait as a mailbox may hold messages. Ordinary messages do not count here.
    ///
    /// [`Event::Control`]: ganger_proc_api::Event::Control
    pub fn send_control(&self, message: Message) -> Result<(), SendError> {
        let delivered = self.task.deliver_control(message);
        delivered.map_err(|(kind, message)| SendError::new(kind, message.to(self.task.pid)))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.pid()).finish()
    }
}

/// The submitter's hold on a process: waits for its end.
///
/// A process has one, because the exit reason is handed out by value. It is a future. Dropping it
/// leaves the process alone.
pub struct ProcessHandle {
    /// Not counted: see `exit_slot.rs`.
    address: ManuallyDrop<Address>,
}

impl ProcessHandle {
    /// The handle of a process, which counts for no reference.
    ///
    /// # Safety
    /// There is one handle a process, and its exit slot has not been abandoned.
    pub(crate) unsafe fn new(task: ManuallyDrop<Task>) -> Self {
        let address = Address::new(ManuallyDrop::into_inner(task));
        Self {
            address: ManuallyDrop::new(address),
        }
    }

    /// The process's PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.address.pid()
    }

    /// The process's address, to be cloned and given away.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a message. Never blocks.
    ///
    /// # Errors
    /// As [`Address::send`].
    #[inline]
    pub fn send(&self, message: Message) -> Result<(), SendError> {
        self.address.send(message)
    }

    /// Sends a control message. Never blocks.
    ///
    /// # Errors
    /// As [`Address::send_control`].
    pub fn send_control(&self, message: Message) -> Result<(), SendError> {
        self.address.send_control(message)
    }

    /// Whether the process has ended, so that [`wait`](Self::wait) would return at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.address.task.exit.is_filled()
    }

    /// Blocks until the process has ended, its PID is gone, and `Lifecycle::on_complete` has been
    /// called.
    ///
    /// Must not be called from a step: its worker would wait. Nor must the thread that is to call
    /// [`Scheduler::start`](crate::Scheduler::start) wait before that: nothing runs until then.
    ///
    /// # Panics
    /// When the handle has been polled, as a future, until it was ready.
    #[cfg_attr(feature = "sim", track_caller)]
    pub fn wait(self) -> ExitReason {
        if Decider::is_driven() && !self.is_finished() {
            Decider::refuse_to_block("wait", "`Rt::wait`");
        }
        loop {
            // SAFETY: this is the handle.
            if let Some(reason) = unsafe { self.address.task.wait_for_end(None) } {
                return reason;
            }
        }
    }

    /// As [`wait`](Self::wait), but gives up after `timeout`.
    ///
    /// # Errors
    /// Gives the handle back when the process has not ended by then.
    ///
    /// # Panics
    /// When the handle has been polled, as a future, until it was ready.
    pub fn wait_timeout(self, timeout: Duration) -> Result<ExitReason, Self> {
        // SAFETY: this is the handle.
        let reason = unsafe { self.address.task.wait_for_end(Some(timeout)) };
        reason.ok_or(self)
    }
}

/// # Panics
/// Polling it again after it was ready panics.
impl Future for ProcessHandle {
    type Output = ExitReason;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ExitReason> {
        // SAFETY: this is the only handle, and `&mut` excludes other uses.
        unsafe { self.address.task.poll_end(context) }
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        // What was in the slot is dropped last: its destructor may panic.
        // SAFETY: this is the handle, and it does nothing more with the slot.
        let _rest = match unsafe { self.address.task.abandon() } {
            Abandoned::Alive(waker) => (waker, None),
            Abandoned::Ended(reason) => {
                // SAFETY: this handle has the reference of the process, which has ended, and is not
                // used again.
                unsafe { ManuallyDrop::drop(&mut self.address) };
                (None, reason)
            }
        };
    }
}

impl fmt::Debug for ProcessHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessHandle")
            .field("pid", &self.pid())
            .field("is_finished", &self.is_finished())
            .finish()
    }
}

impl From<&ProcessHandle> for Address {
    fn from(handle: &ProcessHandle) -> Self {
        Self::new(Arc::clone(&handle.address.task))
    }
}
