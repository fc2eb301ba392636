//! The two ends of a channel.

use crate::block::block_on;
use crate::entries::{Key, Wake, WakeTarget};
use crate::error::{RecvError, SendError};
use crate::lock::{Guard, Lock};
use crate::state::{State, Wakes};
use ganger_sync::atomic::{AtomicUsize, Ordering};
use ganger_sync::{CachePadded, for_each_past_panics};
use ganger_wait::watch::{self, Registered, Thing};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Creates a channel for `capacity` values. With 0, each sender waits until a receiver takes its
/// value. The memory of a burst is given back as the values are received.
///
/// ```
/// let (sender, receiver) = ganger_channel::channel(2);
/// sender.try_send("first")?;
/// sender.try_send("second")?;
/// assert!(sender.try_send("third").is_err());
/// assert_eq!(receiver.try_recv(), Ok("first"));
/// # Ok::<(), ganger_channel::SendError<&str>>(())
/// ```
#[must_use]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared {
        state: CachePadded::new(Lock::new(State::new(capacity))),
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// Creates a channel whose senders never wait. The memory of a burst is given back as the values
/// are received.
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
}

pub(crate) struct Shared<T> {
    pub(crate) state: CachePadded<Lock<State<T>>>,
    /// The number of each end's handles.
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl<T> Shared<T> {
    fn close(&self) -> bool {
        let (was_open, wakes) = self.state.lock().close();
        wake_all(wakes);
        was_open
    }

    /// Returns the object for which a receiver waits, in reports of deadlocks.
    pub(crate) fn sending_end(&self) -> Thing {
        Thing::of("sender of the channel", self)
    }

    /// Returns the object for which a sender waits, in reports of deadlocks.
    pub(crate) fn receiving_end(&self) -> Thing {
        Thing::of("receiver of the channel", self)
    }

    /// Returns `Ok` if the wait goes on, and sets `waker` as its waker. Otherwise returns the
    /// locked state.
    #[inline]
    fn still_waits(&self, key: Key, waker: &Waker) -> Result<(), Guard<'_, State<T>>> {
        let mut state = self.state.lock();
        match state.still_waits(key, waker) {
            None => Err(state),
            Some(true) => Ok(()),
            Some(false) => {
                drop(state);
                self.change_waker(key, waker)
            }
        }
    }

    #[cold]
    fn change_waker(&self, key: Key, waker: &Waker) -> Result<(), Guard<'_, State<T>>> {
        // A waker is users' code, also in its clone and drop.
        let waker = waker.clone();
        let changed = self.state.lock().change_waker(key, waker);
        match changed {
            Ok(_before) => Ok(()),
            Err(unused) => {
                drop(unused);
                Err(self.state.lock())
            }
        }
    }

    /// Settles a claimed value, which does not come back.
    pub(crate) fn settle(&self) {
        let wakes = self.state.lock().settle();
        if let Some(wakes) = wakes {
            wake_all(wakes);
        }
    }

    pub(crate) fn give_back(&self, number: u64, value: T) {
        // Ordering: Acquire pairs with the Release in the drop of the last receiver.
        if self.receivers.load(Ordering::Acquire) == 0 {
            return;
        }
        let wake = self.state.lock().give_back(number, value);
        if let Some(wake) = wake {
            wake.wake();
        }
    }
}

/// Ends a receive that had not to wait: claims the value, and wakes a sender.
#[inline(always)]
fn got<T>(
    mut state: Guard<'_, State<T>>,
    received: Result<((u64, T), Option<Wake>), RecvError>,
    is_claimed: bool,
) -> Result<(u64, T), RecvError> {
    let (value, wake) = received?;
    if is_claimed {
        state.claim();
    }
    drop(state);
    if let Some(wake) = wake {
        wake.wake();
    }
    Ok(value)
}

/// Wakes all waiters, even if a waker panics.
pub(crate) fn wake_all(wakes: Wakes) {
    for_each_past_panics(wakes.into_iter(), Wake::wake);
}

/// Counts one more handle of an end.
pub(crate) fn add(count: &AtomicUsize) {
    // Ordering: Relaxed, as in a clone of an `Arc`: the caller has another handle of this end.
    count.fetch_add(1, Ordering::Relaxed);
}

/// Counts one handle less of an end; returns whether it was the last.
pub(crate) fn is_last(count: &AtomicUsize) -> bool {
    // Ordering: AcqRel: the last handle sees the actions of the others before their drops.
    count.fetch_sub(1, Ordering::AcqRel) == 1
}

/// The sending end. Each clone sends to the same channel.
pub struct Sender<T>(pub(crate) Arc<Shared<T>>);

/// The receiving end. Each value goes to only one of its clones.
pub struct Receiver<T>(pub(crate) Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Sends a value, and waits for room; in a channel without a buffer, until a receiver has the
    /// value. Waiting senders are served in the order in which they began.
    ///
    /// The future sends nothing until it is polled. Dropping it before it is ready drops the value
    /// unsent, unless a receiver already has it.
    ///
    /// # Errors
    /// The future's: [`SendError::Closed`], with the value, also if the channel is closed during
    /// the wait.
    #[inline]
    pub fn send(&self, value: T) -> Send<'_, T> {
        Send {
            sender: self,
            value: Some(value),
            key: None,
            registered: Registered::default(),
        }
    }

    /// Sends a value, if the channel has room or a receiver waits. Never blocks.
    ///
    /// # Errors
    /// [`SendError::Full`] and [`SendError::Closed`], with the value.
    #[inline]
    pub fn try_send(&self, value: T) -> Result<(), SendError<T>> {
        let wake = self.0.state.lock().send(value)?;
        if let Some(wake) = wake {
            wake.wake();
        }
        Ok(())
    }

    /// Sends a value, as [`send`](Self::send) does, but blocks the thread. Does not block a worker
    /// of a scheduler.
    ///
    /// # Errors
    /// [`SendError::Closed`], and [`SendError::OnWorker`] if it would wait in a step, with the
    /// value.
    pub fn send_blocking(&self, value: T) -> Result<(), SendError<T>> {
        self.send_within(value, None)
    }

    /// Sends a value, as [`send_blocking`](Self::send_blocking) does, but waits for at most
    /// `timeout`.
    ///
    /// # Errors
    /// As [`send_blocking`](Self::send_blocking), and [`SendError::Timeout`].
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendError<T>> {
        self.send_within(value, Some(timeout))
    }

    fn send_within(&self, value: T, timeout: Option<Duration>) -> Result<(), SendError<T>> {
        let value = match self.try_send(value) {
            Err(SendError::Full(value)) => value,
            done => return done,
        };
        if !ganger_sched::internal::may_block("a send that waits", "`send`, or `sending`") {
            return Err(SendError::OnWorker(value));
        }
        let mut send = self.send(value);
        match block_on(&mut send, timeout) {
            Some(sent) => sent,
            None => send
                .into_value()
                .map_or(Ok(()), |value| Err(SendError::Timeout(value))),
        }
    }

    /// Closes the channel. Receivers get the values in the buffer; waiting senders get their values
    /// back. Returns `false` if the channel was already closed.
    #[allow(clippy::must_use_candidate, reason = "it closes")]
    pub fn close(&self) -> bool {
        self.0.close()
    }
}

impl<T> Receiver<T> {
    /// Receives the next value. Waiting receivers are served in the order in which they began.
    ///
    /// The future takes nothing until it is polled. A dropped future has taken nothing: a value on
    /// its way goes to the next waiting receiver, or is the next to be received.
    ///
    /// # Errors
    /// The future's: [`RecvError::Closed`] if all values have been received, and the channel is
    /// closed or all senders are gone. The future waits while a value may still come back.
    #[inline]
    pub fn recv(&self) -> Recv<'_, T> {
        Recv {
            receiver: self,
            key: None,
            registered: Registered::default(),
        }
    }

    /// Returns the next value, if the buffer has a value or a sender waits. Never blocks.
    ///
    /// # Errors
    /// [`RecvError::Empty`] and [`RecvError::Closed`].
    pub fn try_recv(&self) -> Result<T, RecvError> {
        let ((_, value), wake) = self.0.state.lock().recv()?;
        if let Some(wake) = wake {
            wake.wake();
        }
        Ok(value)
    }

    /// Receives the next value, as [`recv`](Self::recv) does, but blocks the thread. Does not block
    /// a worker of a scheduler.
    ///
    /// # Errors
    /// [`RecvError::Closed`], and [`RecvError::OnWorker`] if it would wait in a step.
    pub fn recv_blocking(&self) -> Result<T, RecvError> {
        self.recv_within(None)
    }

    /// Receives the next value, as [`recv_blocking`](Self::recv_blocking) does, but waits for at
    /// most `timeout`.
    ///
    /// # Errors
    /// As [`recv_blocking`](Self::recv_blocking), and [`RecvError::Timeout`].
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvError> {
        self.recv_within(Some(timeout))
    }

    fn recv_within(&self, timeout: Option<Duration>) -> Result<T, RecvError> {
        match self.try_recv() {
            Err(RecvError::Empty) => {}
            done => return done,
        }
        if !ganger_sched::internal::may_block("a receive that waits", "`recv`, or `receiving`") {
            return Err(RecvError::OnWorker);
        }
        let mut recv = self.recv();
        block_on(&mut recv, timeout).unwrap_or_else(|| recv.into_value().ok_or(RecvError::Timeout))
    }

    /// Closes the channel: see [`Sender::close`].
    #[allow(clippy::must_use_candidate, reason = "it closes")]
    pub fn close(&self) -> bool {
        self.0.close()
    }
}

macro_rules! both {
    ($end:ident, $count:ident) => {
        impl<T> $end<T> {
            /// Returns how many values are in the buffer; other threads may change the number at
            /// any time.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.state.lock().len()
            }

            /// Returns whether the buffer is empty.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the capacity of the buffer; `None` without a limit.
            #[must_use]
            pub fn capacity(&self) -> Option<usize> {
                let capacity = self.0.state.lock().capacity();
                (capacity < usize::MAX).then_some(capacity)
            }

            /// Returns whether the channel is closed: by a call, or because an end is gone.
            #[must_use]
            pub fn is_closed(&self) -> bool {
                self.0.state.lock().is_closed()
            }

            /// Returns whether both handles belong to the same channel.
            #[must_use]
            pub fn same_channel(&self, other: &Self) -> bool {
                Arc::ptr_eq(&self.0, &other.0)
            }
        }

        impl<T> Clone for $end<T> {
            fn clone(&self) -> Self {
                add(&self.0.$count);
                Self(Arc::clone(&self.0))
            }
        }

        impl<T> fmt::Debug for $end<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let state = self.0.state.lock();
                let (len, is_closed) = (state.len(), state.is_closed());
                drop(state);
                f.debug_struct(stringify!($end))
                    .field("len", &len)
                    .field("is_closed", &is_closed)
                    .finish_non_exhaustive()
            }
        }
    };
}

both!(Sender, senders);
both!(Receiver, receivers);

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if is_last(&self.0.senders) {
            self.0.close();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if is_last(&self.0.receivers) {
            self.0.close();
            let left = self.0.state.lock().clear();
            drop(left);
        }
    }
}

/// Sends a value: see [`Sender::send`].
///
/// # Panics
/// Polling it again after it was ready panics.
#[must_use = "a future sends nothing until it is polled"]
pub struct Send<'a, T> {
    sender: &'a Sender<T>,
    /// The value until the first poll.
    value: Option<T>,
    /// The entry while it waits.
    key: Option<Key>,
    registered: Registered,
}

/// The value is moved, and never pinned.
impl<T> Unpin for Send<'_, T> {}

impl<T> Send<'_, T> {
    /// Gives up, and returns the value, unless it was sent.
    pub fn into_value(mut self) -> Option<T> {
        self.leave()
    }

    fn leave(&mut self) -> Option<T> {
        let Some(key) = self.key.take() else {
            return self.value.take();
        };
        let (stage, value) = self.sender.0.state.lock().leave_sender(key);
        drop(stage);
        value
    }
}

impl<T> Send<'_, T> {
    /// Sends the value, or begins to wait.
    fn begin(&mut self, value: T, context: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        // A waker is users' code, also in its clone.
        let target = WakeTarget::One(context.waker().clone());
        let mut state = self.sender.0.state.lock();
        match state.send(value) {
            Ok(wake) => {
                drop(state);
                if let Some(wake) = wake {
                    wake.wake();
                }
                Poll::Ready(Ok(()))
            }
            Err(SendError::Full(value)) => {
                self.key = Some(state.enlist_sender(value, target));
                drop(state);
                self.registered = watch::wait(|| self.sender.0.receiving_end());
                Poll::Pending
            }
            Err(refused) => Poll::Ready(Err(refused)),
        }
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let shared = &this.sender.0;
        let Some(key) = this.key else {
            let Some(value) = this.value.take() else {
                panic!("the value has been sent: a future is polled until it is ready");
            };
            return match this.sender.try_send(value) {
                Err(SendError::Full(value)) => this.begin(value, context),
                done => Poll::Ready(done),
            };
        };
        let mut state = match shared.still_waits(key, context.waker()) {
            Ok(()) => return Poll::Pending,
            Err(state) => state,
        };
        this.key = None;
        let (_, value) = state.leave_sender(key);
        drop(state);
        this.registered = Registered::default();
        Poll::Ready(value.map_or(Ok(()), |value| Err(SendError::Closed(value))))
    }
}

impl<T> Drop for Send<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.key.is_some() {
            drop(self.leave());
        }
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.key.is_some();
        f.debug_struct("Send").field("waits", &waits).finish()
    }
}

/// Receives a value: see [`Receiver::recv`].
///
/// # Panics
/// Polling it again after it was ready takes another value.
#[must_use = "a future takes nothing until it is polled"]
pub struct Recv<'a, T> {
    receiver: &'a Receiver<T>,
    /// The entry while it waits.
    key: Option<Key>,
    registered: Registered,
}

impl<T> Recv<'_, T> {
    /// Gives up, and returns the value on its way, if any.
    fn into_value(mut self) -> Option<T> {
        let (_, value) = self.leave()?;
        self.receiver.0.settle();
        Some(value)
    }

    /// Leaves the channel. A returned value is still claimed.
    #[inline]
    fn leave(&mut self) -> Option<(u64, T)> {
        let key = self.key.take()?;
        let (stage, value) = self.receiver.0.state.lock().leave_receiver(key);
        drop(stage);
        value
    }

    /// Receives, or begins to wait.
    fn begin(
        &mut self,
        context: &Context<'_>,
        is_claimed: bool,
    ) -> Poll<Result<(u64, T), RecvError>> {
        // A waker is users' code, also in its clone.
        let target = WakeTarget::One(context.waker().clone());
        let mut state = self.receiver.0.state.lock();
        let received = state.recv();
        if let Err(RecvError::Empty) = received {
            self.key = Some(state.enlist_receiver(target));
            drop(state);
            self.registered = watch::wait(|| self.receiver.0.sending_end());
            return Poll::Pending;
        }
        Poll::Ready(got(state, received, is_claimed))
    }

    /// Polls, and returns the value with its number; claims the value if `is_claimed`.
    #[inline]
    pub(crate) fn poll_numbered(
        &mut self,
        context: &mut Context<'_>,
        is_claimed: bool,
    ) -> Poll<Result<(u64, T), RecvError>> {
        let shared = &self.receiver.0;
        let Some(key) = self.key else {
            let mut state = shared.state.lock();
            let received = state.recv();
            if let Err(RecvError::Empty) = received {
                drop(state);
                return self.begin(context, is_claimed);
            }
            return Poll::Ready(got(state, received, is_claimed));
        };
        let mut state = match shared.still_waits(key, context.waker()) {
            Ok(()) => return Poll::Pending,
            Err(state) => state,
        };
        self.key = None;
        let (_, value) = state.leave_receiver(key);
        let wakes = if value.is_some() && !is_claimed {
            state.settle()
        } else {
            None
        };
        drop(state);
        self.registered = Registered::default();
        if let Some(wakes) = wakes {
            wake_all(wakes);
        }
        Poll::Ready(value.ok_or(RecvError::Closed))
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = self.poll_numbered(context, false);
        received.map(|received| received.map(|(_, value)| value))
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some((number, value)) = self.leave() {
            self.receiver.0.give_back(number, value);
        }
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.key.is_some();
        f.debug_struct("Recv").field("waits", &waits).finish()
    }
}
