//! A send that waits for room in a task.

use super::bounded::BoundedSender;
use super::error::SendError;
use super::room::{Room, Waited, Waiting};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Sends an item once the channel has room. From [`BoundedSender::send_async`]. Needs the feature
/// `async`.
///
/// The future does nothing until it is polled. While it waits, it has a place in the line of
/// waiters, but none in the channel. Dropping it drops the item, if unsent. A woken future must be
/// polled or dropped: until then other senders may wait although the channel has room.
///
/// A waker that panics does so in the receive, send or drop that wakes it. A receive then loses its
/// item.
///
/// # Errors
/// [`SendError`] with the item if the receiver is gone or has closed the channel.
///
/// # Panics
/// If it is polled after it was ready.
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
/// let (sender, receiver) = ganger_mpsc::bounded(1);
/// let reader = std::thread::spawn(move || receiver.into_iter().collect::<Vec<_>>());
/// block_on(async {
///     for number in 0..3 {
///         sender.send_async(number).await.unwrap(); // waits for room
///     }
/// });
/// drop(sender);
/// assert_eq!(reader.join().unwrap(), [0, 1, 2]);
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct SendFuture<'a, T> {
    sender: &'a BoundedSender<T>,
    waiting: Waiting<'a>,
    /// `None` once the future is ready.
    item: Option<T>,
}

impl<'a, T> SendFuture<'a, T> {
    pub(super) fn new(sender: &'a BoundedSender<T>, room: &'a Room, item: T) -> Self {
        Self {
            sender,
            waiting: Waiting::new(room),
            item: Some(item),
        }
    }
}

impl<T> BoundedSender<T> {
    /// Sends an item in a task: the future waits until the channel has room. Needs the feature
    /// `async`.
    ///
    /// Dropping the future before it is ready sends nothing and takes no room.
    pub fn send_async(&self, item: T) -> SendFuture<'_, T> {
        SendFuture::new(self, &self.room, item)
    }
}

impl<T> Future for SendFuture<'_, T> {
    type Output = Result<(), SendError<T>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self {
            sender,
            waiting,
            item,
        } = self.get_mut();
        assert!(item.is_some(), "a send was polled after it was ready");
        let Some(waited) = waiting.wait(context.waker(), || sender.is_closed()) else {
            return Poll::Pending;
        };
        let item = item.take().expect("checked before");
        let sent = match waited {
            Waited::Place => sender.send_placed(item),
            Waited::Over | Waited::TimedOut => Err(SendError(item)),
        };
        waiting.leave();
        Poll::Ready(sent)
    }
}

/// No item is pinned.
impl<T> Unpin for SendFuture<'_, T> {}

impl<T> fmt::Debug for SendFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendFuture")
            .field("is_ready", &self.item.is_none())
            .finish_non_exhaustive()
    }
}
