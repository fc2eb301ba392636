//! The cases of a select.

use crate::claim::Claim;
use crate::ends::{Receiver, Sender};
use crate::entries::{Seat, Wake};
use crate::error::{RecvError, SendError};
use crate::lock::RawLock;
use ganger_wait::watch::{self, Registered};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A case of a select, whose outcome is an `R`.
///
/// No other type can be a case: its argument type cannot be named.
///
/// ```compile_fail,E0432
/// use ganger_channel::Act;
/// ```
pub trait Case<R> {
    #[doc(hidden)]
    fn act(&mut self, act: Act<'_, '_>) -> Acted<R>;
}

/// A request to a case.
#[doc(hidden)]
pub struct Act<'a, 'b>(pub(crate) What<'a, 'b>);

impl fmt::Debug for Act<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Act").finish_non_exhaustive()
    }
}

/// The answer of a case.
#[doc(hidden)]
#[derive(Debug)]
pub struct Acted<R>(pub(crate) Said<R>);

pub(crate) enum What<'a, 'b> {
    /// Asks whether the case is ready. The case locks its channel itself, and does not begin to
    /// wait.
    Try(&'a mut Context<'b>),
    /// Polls the case of a future. Cases of channels have entries instead.
    Poll(&'a mut Context<'b>),
    /// Passes the lock of the case's channel, if it has a channel.
    Lock(&'a mut dyn FnMut(*const RawLock)),
    /// Asks whether the case is ready, under the lock. Otherwise the case begins to wait, unless it
    /// already waits.
    Enlist(Locked<'a>),
    /// Registers the waiting case for reports of deadlocks. Without a lock.
    Register,
    /// The case was ready in `Enlist`, or has been chosen: asks for the outcome.
    Finish,
    /// The case was not chosen, and stops waiting.
    Leave,
}

/// Proves that this thread holds the locks of all channels of a select.
pub(crate) struct Locked<'a> {
    claim: &'a Arc<Claim>,
    case: usize,
}

impl<'a> Locked<'a> {
    /// Creates the proof.
    ///
    /// # Safety
    /// This thread holds the locks of all channels of the select until the act is over.
    pub(crate) unsafe fn new(claim: &'a Arc<Claim>, case: usize) -> Self {
        Self { claim, case }
    }

    fn target(&self) -> (Arc<Claim>, usize) {
        (Arc::clone(self.claim), self.case)
    }
}

#[derive(Debug)]
pub(crate) enum Said<R> {
    Nothing,
    /// The case was ready, with this outcome.
    Is(R),
    /// The case was ready, and `Finish` returns the outcome.
    Ready,
}

/// The cases of a select: a list made by the builder, or a `Vec` of cases of the same type.
///
/// No other type can be a list of cases: a select takes the locks of all its cases, and relies on
/// each number to mean the same case.
///
/// ```
/// use ganger_channel::{Case, Cases};
///
/// fn count<R, C: Case<R>>(cases: &Vec<C>) -> usize {
///     Cases::<R>::count(cases)
/// }
/// ```
///
/// ```compile_fail,E0277
/// use ganger_channel::{Case, Cases};
///
/// struct Mine<C>(C);
///
/// impl<R, C: Case<R>> Cases<R> for Mine<C> {
///     fn count(&self) -> usize {
///         1
///     }
///
///     fn at(&mut self, _: usize) -> Option<&mut dyn Case<R>> {
///         Some(&mut self.0)
///     }
/// }
/// ```
pub trait Cases<R>: Sealed {
    /// Returns the number of cases.
    fn count(&self) -> usize;

    /// Returns the case with a number.
    #[doc(hidden)]
    fn at(&mut self, number: usize) -> Option<&mut dyn Case<R>>;
}

mod sealed {
    /// Only types of this crate implement it.
    pub trait Sealed {}
}
use sealed::Sealed;

impl Sealed for NoCases {}
impl<C, L: Sealed> Sealed for With<C, L> {}
impl<C> Sealed for Vec<C> {}

/// No case.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCases;

/// A case, and the cases before it.
#[derive(Debug)]
pub struct With<C, L> {
    pub(crate) case: C,
    pub(crate) others: L,
}

impl<R> Cases<R> for NoCases {
    fn count(&self) -> usize {
        0
    }

    fn at(&mut self, _: usize) -> Option<&mut dyn Case<R>> {
        None
    }
}

impl<R, C: Case<R>, L: Cases<R>> Cases<R> for With<C, L> {
    #[inline]
    fn count(&self) -> usize {
        1 + self.others.count()
    }

    #[inline]
    fn at(&mut self, number: usize) -> Option<&mut dyn Case<R>> {
        match number {
            0 => Some(&mut self.case),
            number => self.others.at(number - 1),
        }
    }
}

impl<R, C: Case<R>> Cases<R> for Vec<C> {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&mut self, number: usize) -> Option<&mut dyn Case<R>> {
        self.get_mut(number).map(|it| it as &mut dyn Case<R>)
    }
}

/// An optional case: `None` is never ready.
impl<R, C: Case<R>> Case<R> for Option<C> {
    fn act(&mut self, act: Act<'_, '_>) -> Acted<R> {
        match self {
            Some(case) => case.act(act),
            None => Acted(Said::Nothing),
        }
    }
}

/// The result of an act under the lock, and the waiter to be woken afterwards.
type Done<T, E> = (Result<T, E>, Option<Wake>);

/// Receives from a channel.
#[derive(Debug)]
pub struct RecvCase<'a, T, F> {
    receiver: &'a Receiver<T>,
    then: Option<F>,
    seat: Option<Seat<T>>,
    got: Option<Done<T, RecvError>>,
    registered: Option<Registered>,
}

impl<'a, T, F> RecvCase<'a, T, F> {
    /// Creates the case that receives, and calls `then` with the result.
    pub fn new(receiver: &'a Receiver<T>, then: F) -> Self {
        Self {
            receiver,
            then: Some(then),
            seat: None,
            got: None,
            registered: None,
        }
    }

    /// Leaves the channel. A returned value is still claimed.
    fn leave(&mut self) -> Option<(usize, T)> {
        let seat = self.seat.take()?;
        self.registered = None;
        let (value, number) = self.receiver.0.leave(seat, |it| &mut it.receivers);
        Some((number, value?))
    }
}

impl<R, T, F: FnOnce(Result<T, RecvError>) -> R> Case<R> for RecvCase<'_, T, F> {
    fn act(&mut self, act: Act<'_, '_>) -> Acted<R> {
        Acted(match act.0 {
            What::Try(_) => match self.receiver.try_recv() {
                Err(RecvError::Empty) => Said::Nothing,
                got => outcome(&mut self.then, got),
            },
            What::Poll(_) => Said::Nothing,
            What::Lock(lock) => {
                lock(self.receiver.0.state.raw());
                Said::Nothing
            }
            What::Enlist(locked) => {
                // SAFETY: the select has the locks of all its channels, as `Locked` says. The guard
                // is gone when this function returns.
                let mut state = unsafe { self.receiver.0.state.locked() };
                match state.recv() {
                    Err(RecvError::Empty) => {
                        if self.seat.is_none() {
                            self.seat = Some(state.receivers.push_select(locked.target(), None));
                        }
                        Said::Nothing
                    }
                    Ok((value, wake)) => {
                        self.got = Some((Ok(value), wake));
                        Said::Ready
                    }
                    Err(closed) => {
                        self.got = Some((Err(closed), None));
                        Said::Ready
                    }
                }
            }
            What::Register => {
                let register = || watch::wait(|| self.receiver.0.sending_end());
                self.registered.get_or_insert_with(register);
                Said::Nothing
            }
            What::Finish => {
                let left = self.leave();
                let got = match (self.got.take(), left) {
                    (Some((got, wake)), _) => {
                        if let Some(wake) = wake {
                            wake.wake();
                        }
                        got
                    }
                    (None, Some((_, value))) => {
                        self.receiver.0.settle();
                        Ok(value)
                    }
                    (None, None) => Err(RecvError::Closed),
                };
                outcome(&mut self.then, got)
            }
            What::Leave => {
                self.leave();
                Said::Nothing
            }
        })
    }
}

/// A select dropped after it was chosen has received nothing: the value goes back.
impl<T, F> Drop for RecvCase<'_, T, F> {
    fn drop(&mut self) {
        if let Some((number, value)) = self.leave() {
            self.receiver.0.give_back(number, value);
        }
    }
}

/// Ends the case: calls `then`, which makes the outcome.
fn outcome<R, V, F: FnOnce(V) -> R>(then: &mut Option<F>, got: V) -> Said<R> {
    then.take()
        .map_or(Said::Nothing, |then| Said::Is(then(got)))
}

/// The source of a case's value, to which the value returns if another case is chosen.
pub trait Slot<T> {
    fn take(&mut self) -> Option<T>;
    fn put_back(&mut self, value: T);
}

/// Sends a value to a channel; drops the value if another case is chosen.
pub type SendCase<'a, T, F> = Sends<'a, T, Option<T>, F>;

/// Sends a value from an option; leaves the value there if another case is chosen.
pub type SendFromCase<'a, T, F> = Sends<'a, T, &'a mut Option<T>, F>;

/// Sends a value to a channel.
#[derive(Debug)]
pub struct Sends<'a, T, V: Slot<T>, F> {
    sender: &'a Sender<T>,
    slot: V,
    then: Option<F>,
    seat: Option<Seat<T>>,
    got: Option<Done<(), SendError<T>>>,
    registered: Option<Registered>,
}

impl<T> Slot<T> for Option<T> {
    fn take(&mut self) -> Option<T> {
        self.take()
    }

    fn put_back(&mut self, value: T) {
        *self = Some(value);
    }
}

impl<T> Slot<T> for &mut Option<T> {
    fn take(&mut self) -> Option<T> {
        Option::take(self)
    }

    fn put_back(&mut self, value: T) {
        **self = Some(value);
    }
}

impl<'a, T, V: Slot<T>, F> Sends<'a, T, V, F> {
    pub(crate) fn of(sender: &'a Sender<T>, slot: V, then: F) -> Self {
        Self {
            sender,
            slot,
            then: Some(then),
            seat: None,
            got: None,
            registered: None,
        }
    }

    fn leave(&mut self) -> Option<T> {
        let seat = self.seat.take()?;
        self.registered = None;
        let (value, _) = self.sender.0.leave(seat, |it| &mut it.senders);
        value
    }
}

impl<'a, T, F> SendCase<'a, T, F> {
    /// Creates the case that sends the value, and calls `then` with the result.
    pub fn new(sender: &'a Sender<T>, value: T, then: F) -> Self {
        Self::of(sender, Some(value), then)
    }
}

impl<R, T, V: Slot<T>, F: FnOnce(Result<(), SendError<T>>) -> R> Case<R> for Sends<'_, T, V, F> {
    fn act(&mut self, act: Act<'_, '_>) -> Acted<R> {
        Acted(match act.0 {
            What::Try(_) => {
                let Some(value) = self.slot.take() else {
                    return Acted(Said::Nothing);
                };
                match self.sender.try_send(value) {
                    Err(SendError::Full(value)) => {
                        self.slot.put_back(value);
                        Said::Nothing
                    }
                    sent => outcome(&mut self.then, sent),
                }
            }
            What::Poll(_) => Said::Nothing,
            What::Lock(lock) => {
                lock(self.sender.0.state.raw());
                Said::Nothing
            }
            What::Enlist(locked) => {
                // SAFETY: the select has the locks of all its channels, as `Locked` says. The guard
                // is gone when this function returns.
                let mut state = unsafe { self.sender.0.state.locked() };
                let value = match &self.seat {
                    // The case checks again: no thread has taken the value, for the select was
                    // busy.
                    // SAFETY: the seat is of this channel's senders.
                    Some(seat) => unsafe { state.senders.waiting(seat, |it| it.value.take()) },
                    None => Some(self.slot.take()),
                };
                let Some(Some(value)) = value else {
                    return Acted(Said::Nothing);
                };
                match (state.send(value), &self.seat) {
                    (Err(SendError::Full(value)), Some(seat)) => {
                        // SAFETY: the seat is of this channel's senders.
                        unsafe { state.senders.waiting(seat, |it| it.value = Some(value)) };
                        Said::Nothing
                    }
                    (Err(SendError::Full(value)), None) => {
                        let entry = state.senders.push_select(locked.target(), Some(value));
                        self.seat = Some(entry);
                        Said::Nothing
                    }
                    (Ok(wake), _) => {
                        self.got = Some((Ok(()), wake));
                        Said::Ready
                    }
                    (Err(refused), _) => {
                        self.got = Some((Err(refused), None));
                        Said::Ready
                    }
                }
            }
            What::Register => {
                let register = || watch::wait(|| self.sender.0.receiving_end());
                self.registered.get_or_insert_with(register);
                Said::Nothing
            }
            What::Finish => {
                let left = self.leave();
                let got = match self.got.take() {
                    Some((got, wake)) => {
                        if let Some(wake) = wake {
                            wake.wake();
                        }
                        got
                    }
                    None => left.map_or(Ok(()), |value| Err(SendError::Closed(value))),
                };
                outcome(&mut self.then, got)
            }
            What::Leave => {
                if let Some(value) = self.leave() {
                    self.slot.put_back(value);
                }
                Said::Nothing
            }
        })
    }
}

impl<T, V: Slot<T>, F> Drop for Sends<'_, T, V, F> {
    fn drop(&mut self) {
        if let Some(value) = self.leave() {
            self.slot.put_back(value);
        }
    }
}

/// Waits for a future.
#[derive(Debug)]
pub struct FutureCase<U, F> {
    future: U,
    then: Option<F>,
}

impl<U, F> FutureCase<U, F> {
    /// Creates the case that calls `then` with the output of the future.
    pub fn new(future: U, then: F) -> Self {
        let then = Some(then);
        Self { future, then }
    }
}

impl<R, U: Future + Unpin, F: FnOnce(U::Output) -> R> Case<R> for FutureCase<U, F> {
    fn act(&mut self, act: Act<'_, '_>) -> Acted<R> {
        Acted(match act.0 {
            What::Try(context) | What::Poll(context) if self.then.is_some() => {
                match Pin::new(&mut self.future).poll(context) {
                    Poll::Ready(output) => outcome(&mut self.then, output),
                    Poll::Pending => Said::Nothing,
                }
            }
            _ => Said::Nothing,
        })
    }
}
