//! The receiving side of a channel, for a task.

use super::error::{RecvError, TryRecvError};
use super::receiver::Receiver;
use crate::list::Batch;
use crate::queue::Park;
use futures_core::{FusedStream, Stream};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Receives from any number of senders in an asynchronous task, under any executor: it only needs
/// the task's waker. From [`Receiver::into_async`]. Needs the feature `async`.
///
/// The receiver is a [`Stream`] as well, which ends when the channel is empty and no item will
/// come. Of the items that come while the task waits, the first wakes it. A waker that panics does
/// so in the send that wakes it, after the item is sent. The waker may also panic in the drop of
/// the last sender or in a close, which aborts the program if this thread is already unwinding.
///
/// ```
/// # struct Thread(std::thread::Thread);
/// # impl std::task::Wake for Thread {
/// #     fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
/// # }
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     let waker = std::sync::Arc::new(Thread(std::thread::current())).into();
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// let (sender, receiver) = ganger_mpsc::channel();
/// let mut receiver = receiver.into_async();
/// std::thread::spawn(move || sender.send("hello").unwrap());
/// block_on(async {
///     assert_eq!(receiver.recv().await, Ok("hello"));
///     assert!(receiver.recv().await.is_err()); // the sender is gone
/// });
/// ```
pub struct AsyncReceiver<T> {
    receiver: Receiver<T>,
    /// Whether the receiver has seen the end.
    is_over: bool,
}

impl<T> Receiver<T> {
    /// Converts the receiver for an asynchronous task. Needs the feature `async`.
    #[must_use]
    pub fn into_async(self) -> AsyncReceiver<T> {
        AsyncReceiver {
            receiver: self,
            is_over: false,
        }
    }
}

impl<T> AsyncReceiver<T> {
    /// Takes the oldest item, and waits while the channel is empty.
    ///
    /// Dropping the future before it is ready loses no item.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no item will come.
    pub async fn recv(&mut self) -> Result<T, RecvError> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Takes the oldest item. If the channel is empty, the task is woken when an item or the end
    /// comes.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no item will come.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Result<T, RecvError>> {
        loop {
            match self.receiver.try_recv() {
                Ok(item) => return Poll::Ready(Ok(item)),
                Err(TryRecvError::Disconnected) => {
                    self.is_over = true;
                    return Poll::Ready(Err(RecvError));
                }
                Err(TryRecvError::Empty) => {}
            }
            // Before the park: the sender with the token must find the waker.
            self.receiver.shared().set_waker(context.waker());
            match self.receiver.shared().queue.park() {
                Park::Parked => return Poll::Pending,
                // Without a token no sender takes the waker out, and the waker may keep this
                // receiver alive.
                Park::NotEmpty | Park::Closed => self.receiver.shared().forget_waker(),
            }
        }
    }

    /// Takes the oldest item, if any. Never waits: see [`Receiver::try_recv`].
    ///
    /// # Errors
    /// As [`Receiver::try_recv`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.receiver.try_recv()
    }

    /// Takes all items, the oldest first. Never waits: see [`Receiver::drain`].
    pub fn drain(&mut self) -> Batch<T> {
        self.receiver.drain()
    }

    /// Closes the channel and takes all items: see [`Receiver::close`].
    pub fn close(&mut self) -> Batch<T> {
        self.receiver.close()
    }

    /// Returns the number of items: see [`Receiver::len`]. O(n) in the undrained items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.receiver.len()
    }

    /// Returns whether the channel is empty at this moment. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Returns whether no more items will be sent: see [`Receiver::is_closed`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Converts the receiver for a thread, which blocks.
    #[must_use]
    pub fn into_blocking(self) -> Receiver<T> {
        self.receiver.shared().forget_waker();
        self.receiver
    }
}

impl<T> Stream for AsyncReceiver<T> {
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.get_mut().poll_recv(context).map(Result::ok)
    }
}

impl<T> FusedStream for AsyncReceiver<T> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

/// No item is pinned.
impl<T> Unpin for AsyncReceiver<T> {}

impl<T> fmt::Debug for AsyncReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncReceiver")
            .field(&self.receiver)
            .finish()
    }
}
