//! The sending side of a channel.

use super::error::SendError;
use super::shared::Shared;
use crate::list::Batch;
use crate::queue::{Closed, Pushed, Sealed};
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::Arc;
use std::fmt;

/// Sends to one [`Receiver`](crate::Receiver). Clone it for every thread, or share it.
///
/// Nothing here waits for the receiver. A send takes a lock only to wake a receiver that sleeps,
/// and holds it for a few instructions. Items of one thread arrive in the order in which it sent
/// them. When the last sender is dropped, the receiver gets what is left and then sees the end. All
/// that any sender did before it was dropped happens before that.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// `shared.senders` counts this sender already.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Sends one item. O(1) but for lost races; allocates one node. Does not wait for the receiver.
    ///
    /// # Errors
    /// [`SendError`] with the item if the receiver is gone or has closed the channel. An item that
    /// is sent may never be received: the receiver may go before it takes the item.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send(1).unwrap();
    /// drop(receiver);
    /// assert_eq!(sender.send(2).unwrap_err().into_inner(), 2);
    /// ```
    #[inline]
    pub fn send(&self, item: T) -> Result<(), SendError<T>> {
        self.finish(self.shared.queue.push(item))
    }

    /// Sends all items of `iter`, in order and with no other item between them, by one push. O(n);
    /// allocates one node an item. If the iterator panics, nothing is sent.
    ///
    /// # Errors
    /// [`SendError`] with all the items if the receiver is gone or has closed the channel. Without
    /// items it always succeeds.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send_all("abc".chars()).unwrap();
    /// assert_eq!(receiver.try_iter().collect::<String>(), "abc");
    /// ```
    pub fn send_all(&self, iter: impl IntoIterator<Item = T>) -> Result<(), SendError<Batch<T>>> {
        self.finish(self.shared.queue.push_all(iter))
    }

    /// Whether the receiver is gone or has closed the channel. Once true, it stays true. O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.queue.is_closed()
    }

    /// Wakes the receiver if that is what the push owes.
    #[inline]
    fn finish<U>(&self, pushed: Result<Pushed, Closed<U>>) -> Result<(), SendError<U>> {
        match pushed {
            Ok(Pushed::First | Pushed::Queued) => Ok(()),
            Ok(Pushed::Unparked) => {
                self.shared.wake();
                Ok(())
            }
            Err(Closed(refused)) => Err(SendError(refused)),
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        // Ordering: Relaxed, because this sender keeps the count above zero meanwhile. The count
        // cannot overflow: cloning the `Arc` aborts long before that.
        shared.senders.fetch_add(1, Ordering::Relaxed);
        Self { shared }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // Ordering: AcqRel pairs with the same operation of the other senders: all that they did
        // happens before the seal by the last sender to go.
        if self.shared.senders.fetch_sub(1, Ordering::AcqRel) == 1
            && self.shared.queue.seal() == Sealed::Unparked
        {
            self.shared.wake();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("queue", &self.shared.queue)
            .finish_non_exhaustive()
    }
}
