//! The sending side of a bounded channel.

use super::error::{SendError, SendTimeoutError, TrySendError};
use super::room::{Room, Waited, Waiting};
use super::sender::Sender;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Sends to a [`Receiver`](crate::Receiver) while the channel has room. Clone it for every thread,
/// or share it.
///
/// Items of one thread arrive in the order in which it sent them. When the last sender is dropped,
/// the receiver gets the remaining items and then sees the end.
pub struct BoundedSender<T> {
    sender: Sender<T>,
    pub(super) room: Arc<Room>,
}

impl<T> BoundedSender<T> {
    pub(super) fn new(sender: Sender<T>, room: Arc<Room>) -> Self {
        Self { sender, room }
    }

    /// Sends an item, if the channel has room. Never blocks; O(1) except for lost races.
    ///
    /// # Errors
    /// [`TrySendError`] with the item: `Full` if the channel has no room now, `Disconnected` if the
    /// receiver is gone or has closed the channel.
    ///
    /// ```
    /// use ganger_mpsc::TrySendError;
    ///
    /// let (sender, receiver) = ganger_mpsc::bounded(2);
    /// sender.try_send(1).unwrap();
    /// sender.try_send(2).unwrap();
    /// assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    /// assert_eq!(receiver.recv(), Ok(1));
    /// sender.try_send(3).unwrap();
    /// drop(receiver);
    /// assert_eq!(sender.try_send(4), Err(TrySendError::Disconnected(4)));
    /// ```
    pub fn try_send(&self, item: T) -> Result<(), TrySendError<T>> {
        if self.room.try_take() {
            Ok(self.sender.send(item)?)
        } else if self.is_closed() {
            Err(TrySendError::Disconnected(item))
        } else {
            Err(TrySendError::Full(item))
        }
    }

    /// Sends an item, and blocks until the channel has room. The sender sleeps while it waits. Of
    /// several waiting senders, the receiver wakes the longest-waiting first; newcomers may be
    /// faster.
    ///
    /// # Errors
    /// [`SendError`] with the item if the receiver is gone or has closed the channel, also while
    /// the sender waits.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::bounded(1);
    /// sender.send(1).unwrap();
    /// let other = std::thread::spawn(move || sender.send(2));
    /// drop(receiver);
    /// assert_eq!(other.join().unwrap().unwrap_err().into_inner(), 2);
    /// ```
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        let mut waiting = Waiting::new(&self.room);
        match waiting.block(None, || self.is_closed()) {
            Waited::Place => self.sender.send(item),
            Waited::Over | Waited::TimedOut => Err(SendError(item)),
        }
    }

    /// Sends an item, as [`send`](Self::send) does, but blocks for at most `timeout`.
    ///
    /// # Errors
    /// [`SendTimeoutError`] with the item: `Timeout` if the channel had no room in time,
    /// `Disconnected` if the receiver is gone or has closed the channel.
    ///
    /// ```
    /// use ganger_mpsc::SendTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (sender, receiver) = ganger_mpsc::bounded(1);
    /// let soon = Duration::from_millis(1);
    /// sender.send_timeout(1, soon).unwrap();
    /// assert_eq!(sender.send_timeout(2, soon), Err(SendTimeoutError::Timeout(2)));
    /// drop(receiver);
    /// assert_eq!(sender.send_timeout(3, soon), Err(SendTimeoutError::Disconnected(3)));
    /// ```
    pub fn send_timeout(&self, item: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        let mut waiting = Waiting::new(&self.room);
        match waiting.block(Some(timeout), || self.is_closed()) {
            Waited::Place => Ok(self.sender.send(item)?),
            Waited::Over => Err(SendTimeoutError::Disconnected(item)),
            Waited::TimedOut => Err(SendTimeoutError::Timeout(item)),
        }
    }

    /// Sends an item whose place is already taken.
    #[cfg(feature = "async")]
    pub(super) fn send_placed(&self, item: T) -> Result<(), SendError<T>> {
        self.sender.send(item)
    }

    /// Returns whether the receiver is gone or has closed the channel. Once true, it stays true.
    /// O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl<T> Clone for BoundedSender<T> {
    fn clone(&self) -> Self {
        Self::new(self.sender.clone(), Arc::clone(&self.room))
    }
}

impl<T> fmt::Debug for BoundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedSender")
            .field("free", &self.room.free())
            .field("waiting", &self.room.waiting())
            .field("sender", &self.sender)
            .finish()
    }
}
