//! The two ends of a channel.

use crate::block::block_on;
use crate::error::{RecvError, SendError};
use crate::futures::{Recv, Send};
use crate::shared::{Shared, add, is_last};
use std::fmt;
use std::sync::Arc;
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
    let shared = Arc::new(Shared::new(capacity));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

/// Creates a channel whose senders never wait. The memory of a burst is given back as the values
/// are received.
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    channel(usize::MAX)
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
        Send::new(&self.0, value)
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
        Recv::new(&self.0)
    }

    /// Returns the next value, if the buffer has a value or a sender waits. Never blocks.
    ///
    /// # Errors
    /// [`RecvError::Empty`] and [`RecvError::Closed`].
    pub fn try_recv(&self) -> Result<T, RecvError> {
        let (value, wake) = self.0.state.lock().recv()?;
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
