//! The sending side of a channel.

use crate::Batch;
use crate::channel::Shared;
use crate::error::{Closed, SendError};
use crate::outcome::{Pushed, Sealed};
use ganger_sync::atomic::Ordering;
use ganger_sync::sync::Arc;
use std::fmt;

/// Sends to one [`Receiver`](crate::Receiver). Clone it for every thread, or share it.
///
/// Nothing here waits for the receiver: a send takes a lock only to wake a receiver that sleeps,
/// and then for a few instructions. Items of one thread arrive in the order in which it sent them.
/// When the last sender is dropped, the receiver gets what is left and then sees the end, which
/// happens after all that any sender did before it was dropped.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    pub(crate) fn shared(&self) -> &Shared<T> {
        &self.shared
    }

    /// The caller has counted this sender.
    pub(crate) fn new(shared: Arc<Shared<T>>) -> Self {
        Self { shared }
    }

    /// Sends one item. One node; O(1) but for lost races.
    ///
    /// # Errors
    /// [`SendError`] with the item if the receiver is gone or has closed the channel. An item that
    /// was sent is not always received: the receiver may go before it takes it.
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

    /// Sends all items of `iter`, in order and with nothing of another sender's between them, at
    /// the price of one send and a node an item. If the iterator panics, nothing is sent.
    ///
    /// # Errors
    /// [`SendError`] with all the items if the receiver is gone or has closed the channel. No items
    /// are always sent.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send_all("abc".chars()).unwrap();
    /// assert_eq!(receiver.try_iter().collect::<String>(), "abc");
    /// ```
    pub fn send_all(&self, iter: impl IntoIterator<Item = T>) -> Result<(), SendError<Batch<T>>> {
        self.finish(self.shared.queue.push_all(iter))
    }

    /// Whether the receiver is gone or has closed the channel. Once true, it stays true.
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
        // Ordering: Relaxed, because this sender keeps the count above zero meanwhile. It cannot
        // overflow: the clone above aborts long before that.
        shared.senders.fetch_add(1, Ordering::Relaxed);
        Self { shared }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // Ordering: Release pairs with the Acquire of the same operation in the last sender to go:
        // what all senders pushed, and all else that they did, comes before the seal.
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
