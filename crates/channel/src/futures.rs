//! The futures of a send and a receive.
//!
//! A future that need not wait takes a single short turn of the channel's lock. A waiting future
//! has a seat in a line (`entries.rs`), and reads its outcome there without the lock.

use crate::entries::{Seat, Wake};
use crate::error::{RecvError, SendError};
use crate::lock::Guard;
use crate::shared::Shared;
use crate::state::State;
use ganger_sched::internal::is_process_waker;
use ganger_wait::watch::{self, Registered};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Sends a value: see [`Sender::send`](crate::Sender::send).
///
/// # Panics
/// Polling it again after it was ready panics.
#[must_use = "a future sends nothing until it is polled"]
pub struct Send<'a, T> {
    shared: &'a Shared<T>,
    /// The value until the first poll.
    value: Option<T>,
    /// The entry while it waits.
    seat: Option<Seat<T>>,
    registered: Registered,
}

/// The value is moved, and never pinned.
impl<T> Unpin for Send<'_, T> {}

impl<'a, T> Send<'a, T> {
    #[inline]
    pub(crate) fn new(shared: &'a Shared<T>, value: T) -> Self {
        Self {
            shared,
            value: Some(value),
            seat: None,
            registered: Registered::default(),
        }
    }

    /// Gives up, and returns the value, unless it was sent.
    pub fn into_value(mut self) -> Option<T> {
        self.leave()
    }

    #[cold]
    fn leave(&mut self) -> Option<T> {
        let Some(seat) = self.seat.take() else {
            return self.value.take();
        };
        let (value, _) = self.shared.leave(seat, |it| &mut it.senders);
        value
    }
}

impl<'a, T> Send<'a, T> {
    /// Sends the value, or begins to wait.
    // Not inlined, so that `poll` stays short without a wait.
    #[inline(never)]
    fn begin(
        &mut self,
        mut state: Guard<'a, State<T>>,
        value: T,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendError<T>>> {
        let value = match state.send(value) {
            Err(SendError::Full(value)) => value,
            done => return Poll::Ready(sent(state, done)),
        };
        if is_process_waker(context.waker()) {
            let waker = context.waker().clone();
            return self.wait(state, value, waker);
        }
        // Another waker is users' code, also in its clone.
        drop(state);
        let waker = context.waker().clone();
        let mut state = self.shared.state.lock();
        match state.send(value) {
            Err(SendError::Full(value)) => self.wait(state, value, waker),
            done => {
                let sent = sent(state, done);
                drop(waker);
                Poll::Ready(sent)
            }
        }
    }

    #[inline(always)]
    fn wait(
        &mut self,
        mut state: Guard<'a, State<T>>,
        value: T,
        waker: Waker,
    ) -> Poll<Result<(), SendError<T>>> {
        self.seat = Some(state.senders.push_waker(waker, Some(value)));
        drop(state);
        self.registered = watch::wait(|| self.shared.receiving_end());
        Poll::Pending
    }
}

impl<T> Send<'_, T> {
    /// Ends the wait, if it is over.
    fn end(&mut self, context: &Context<'_>) -> Poll<Result<(), SendError<T>>> {
        let shared = self.shared;
        let outcome = shared.outcome(&mut self.seat, |it| &mut it.senders, context.waker());
        let Some((value, _)) = outcome else {
            return Poll::Pending;
        };
        self.registered = Registered::default();
        Poll::Ready(value.map_or(Ok(()), |value| Err(SendError::Closed(value))))
    }
}

impl<T> Future for Send<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.seat.is_some() {
            return this.end(context);
        }
        let Some(value) = this.value.take() else {
            panic!("the value has been sent: a future is polled until it is ready");
        };
        let mut state = this.shared.state.lock();
        match state.store(value) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(value) => this.begin(state, value, context),
        }
    }
}

impl<T> Drop for Send<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.seat.is_some() {
            drop(self.leave());
        }
    }
}

impl<T> fmt::Debug for Send<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.seat.is_some();
        f.debug_struct("Send").field("waits", &waits).finish()
    }
}

/// Receives a value: see [`Receiver::recv`](crate::Receiver::recv).
///
/// # Panics
/// Polling it again after it was ready takes another value.
#[must_use = "a future takes nothing until it is polled"]
pub struct Recv<'a, T> {
    shared: &'a Shared<T>,
    /// The entry while it waits.
    seat: Option<Seat<T>>,
    registered: Registered,
}

impl<'a, T> Recv<'a, T> {
    #[inline]
    pub(crate) fn new(shared: &'a Shared<T>) -> Self {
        Self {
            shared,
            seat: None,
            registered: Registered::default(),
        }
    }

    /// Gives up, and returns the value on its way, if any.
    pub(crate) fn into_value(mut self) -> Option<T> {
        let (_, value) = self.leave()?;
        self.shared.settle();
        Some(value)
    }

    /// Leaves the channel. A returned value is still claimed.
    #[cold]
    fn leave(&mut self) -> Option<(usize, T)> {
        let seat = self.seat.take()?;
        let (value, number) = self.shared.leave(seat, |it| &mut it.receivers);
        Some((number, value?))
    }

    /// Receives, or begins to wait.
    // As `Send::begin`.
    #[inline(never)]
    fn begin(
        &mut self,
        mut state: Guard<'a, State<T>>,
        context: &Context<'_>,
    ) -> Poll<Result<T, RecvError>> {
        match state.recv() {
            Err(RecvError::Empty) => {}
            done => return Poll::Ready(got(state, done)),
        }
        if is_process_waker(context.waker()) {
            let waker = context.waker().clone();
            self.wait(state, waker);
            return Poll::Pending;
        }
        // Another waker is users' code, also in its clone.
        drop(state);
        self.begin_with(context.waker().clone(), State::recv)
    }

    /// Receives by `recv`, or begins to wait.
    #[cold]
    fn begin_with<V>(
        &mut self,
        waker: Waker,
        recv: impl FnOnce(&mut State<T>) -> Result<(V, Option<Wake>), RecvError>,
    ) -> Poll<Result<V, RecvError>> {
        let mut state = self.shared.state.lock();
        match recv(&mut state) {
            Err(RecvError::Empty) => self.wait(state, waker),
            done => {
                let got = got(state, done);
                drop(waker);
                return Poll::Ready(got);
            }
        }
        Poll::Pending
    }

    #[inline(always)]
    fn wait(&mut self, mut state: Guard<'a, State<T>>, waker: Waker) {
        self.seat = Some(state.receivers.push_waker(waker, None));
        drop(state);
        self.registered = watch::wait(|| self.shared.sending_end());
    }

    /// Ends the wait, if it is over. The value is still claimed.
    #[inline(always)]
    fn end(&mut self, context: &Context<'_>) -> Poll<Result<(usize, T), RecvError>> {
        let shared = self.shared;
        let outcome = shared.outcome(&mut self.seat, |it| &mut it.receivers, context.waker());
        let Some((value, number)) = outcome else {
            return Poll::Pending;
        };
        self.registered = Registered::default();
        let received = value.map(|value| (number, value));
        Poll::Ready(received.ok_or(RecvError::Closed))
    }

    /// Ends the wait, if it is over, and settles the claim.
    fn end_settled(&mut self, context: &Context<'_>) -> Poll<Result<T, RecvError>> {
        let ended = self.end(context);
        if let Poll::Ready(Ok(_)) = ended {
            self.shared.settle();
        }
        ended.map_ok(|(_, value)| value)
    }

    /// Polls, and returns the claimed value with its number.
    pub(crate) fn poll_claimed(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<(usize, T), RecvError>> {
        if self.seat.is_some() {
            return self.end(context);
        }
        self.begin_with(context.waker().clone(), State::recv_claimed)
    }
}

impl<T> Future for Recv<'_, T> {
    type Output = Result<T, RecvError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.seat.is_some() {
            return this.end_settled(context);
        }
        let mut state = this.shared.state.lock();
        match state.take() {
            Some(value) => Poll::Ready(Ok(value)),
            None => this.begin(state, context),
        }
    }
}

impl<T> Drop for Recv<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.seat.is_some()
            && let Some((number, value)) = self.leave()
        {
            self.shared.give_back(number, value);
        }
    }
}

impl<T> fmt::Debug for Recv<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.seat.is_some();
        f.debug_struct("Recv").field("waits", &waits).finish()
    }
}

/// Ends a receive that had not to wait: wakes a sender.
#[inline(always)]
fn got<T, V>(
    state: Guard<'_, State<T>>,
    received: Result<(V, Option<Wake>), RecvError>,
) -> Result<V, RecvError> {
    let (value, wake) = received?;
    drop(state);
    if let Some(wake) = wake {
        wake.wake();
    }
    Ok(value)
}

/// Ends a send that had not to wait: wakes a receiver.
#[inline(always)]
fn sent<T>(
    state: Guard<'_, State<T>>,
    sent: Result<Option<Wake>, SendError<T>>,
) -> Result<(), SendError<T>> {
    drop(state);
    if let Some(wake) = sent? {
        wake.wake();
    }
    Ok(())
}
