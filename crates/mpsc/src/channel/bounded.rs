//! The sending side of a bounded channel.

use super::error::{SendError, TrySendError};
use super::room::Room;
use super::sender::Sender;
use std::fmt;

/// Sends to one [`Receiver`](crate::Receiver) while there is room. Clone it for every thread, or
/// share it.
///
/// Items of one thread arrive in the order in which it sent them. When the last sender is dropped,
/// the receiver gets what is left and then sees the end.
pub struct BoundedSender<T> {
    sender: Sender<T>,
}

impl<T> BoundedSender<T> {
    /// The sender's channel has a [`Room`].
    pub(super) fn new(sender: Sender<T>) -> Self {
        Self { sender }
    }

    /// Sends one item, if there is room for it. Never blocks; O(1) but for lost races.
    ///
    /// # Errors
    /// [`TrySendError`] with the item: `Full` if there is no room now, `Disconnected` if the
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
        if self.room().try_take() {
            Ok(self.sender.send(item)?)
        } else if self.is_closed() {
            Err(TrySendError::Disconnected(item))
        } else {
            Err(TrySendError::Full(item))
        }
    }

    /// Sends one item, and blocks until there is room for it. The sender sleeps while it waits;
    /// several that wait get room in no particular order.
    ///
    /// # Errors
    /// [`SendError`] with the item if the receiver is gone or has closed the channel, also if that
    /// happens while the sender waits.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::bounded(1);
    /// sender.send(1).unwrap();
    /// let other = std::thread::spawn(move || sender.send(2));
    /// drop(receiver);
    /// assert_eq!(other.join().unwrap().unwrap_err().into_inner(), 2);
    /// ```
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        if self.room().take(|| self.is_closed()) {
            self.sender.send(item)
        } else {
            Err(SendError(item))
        }
    }

    /// Whether the receiver is gone or has closed the channel. Once true, it stays true. O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    fn room(&self) -> &Room {
        let room = self.sender.shared().room.as_ref();
        room.expect("a bounded channel has room")
    }
}

impl<T> Clone for BoundedSender<T> {
    fn clone(&self) -> Self {
        Self::new(self.sender.clone())
    }
}

impl<T> fmt::Debug for BoundedSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedSender")
            .field("free", &self.room().free())
            .field("sender", &self.sender)
            .finish()
    }
}
