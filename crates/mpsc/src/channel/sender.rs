//! The sending side of a channel.

use super::error::SendError;
use super::shared::Shared;
use crate::list::Batch;
use crate::queue::{Closed, Pushed, Sealed};
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::Arc;
use std::fmt;

/// Sends to a [`Receiver`](crate::Receiver). Clone it for every thread, or share it.
///
/// A sender never waits for the receiver. A send takes a lock only to wake a sleeping receiver, and
/// holds it for a few instructions. Items of one thread arrive in the order in which it sent them.
/// When the last sender is dropped, the receiver gets the remaining items and then sees the end.
/// Everything that a sender did before its drop happens before this end.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Creates a sender that `shared.senders` already counts.
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Sends an item. O(1) except for lost races; allocates one node. Does not wait for the
    /// receiver.
    ///
    /// # Errors
    /// [`SendError`] with the item if the receiver is gone or has closed the channel. A sent item
    /// may never be received: the receiver may be dropped before it takes the item.
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
    /// allocates one node an item. If the iterator panics, no item is sent.
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

    /// Returns whether the receiver is gone or has closed the channel. Once true, it stays true.
    /// O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.queue.is_closed()
    }

    /// Wakes the receiver if the push obliges the caller to.
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
        // cannot overflow: cloning the `Arc` aborts long before.
        shared.senders.fetch_add(1, Ordering::Relaxed);
        Self { shared }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // Ordering: AcqRel pairs with the same operation of the other senders: all their actions
        // happen before the seal by the last sender.
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
