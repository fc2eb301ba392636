//! The channel: a [`Queue`](crate::queue::Queue) with a receiver that sleeps.
//!
//! **Problem.** The queue tells which thread must wake the consumer, but wakes nothing itself, and
//! does not know the number of pushers. A channel has senders that come and go, and a receiver that
//! blocks.
//!
//! **Rejected.** A condition variable that every sender signals: a lock on the way of every send. A
//! count of senders that the receiver reads after it has parked: two locations, hence a full fence
//! on both sides.
//!
//! **Sender**
//! 1. Push. On `Unparked`, leave a token in the parker, and wake the task, if any.
//! 2. The last sender to be dropped seals the queue. On `Unparked`, it wakes the receiver as in 1.
//!
//! **Receiver**
//! 1. Take the oldest item of its own backlog. If the backlog is empty, drain the queue into it.
//! 2. If both are empty: a closed queue is the end. Otherwise park the queue, and sleep in the
//!    parker.
//! 3. When awake again, take the park back, whether or not the token was of this park. Go to 1. A
//!    task leaves its waker before it parks, and does not take the park back.
//!
//! **Proof sketch.** The queue refuses to park over an item or over its end, and after a park the
//! next push or seal has the token: so the receiver misses nothing. A sleep that ends at its
//! deadline may leave a token behind. This token can only end a later sleep early, and a look
//! follows every sleep.
//!
//! **Layers.** From the bottom: `error`, `line`, `backlog`, `yields`; `room` and `shared`;
//! `sender` and `receiver`; `bounded`, `iter` and `task`; `send_future`. This folder may import
//! `queue` and `list`.

mod backlog;
mod bounded;
mod error;
mod iter;
mod line;
#[cfg(test)]
mod loom_room;
mod receiver;
mod room;
#[cfg(feature = "async")]
mod send_future;
mod sender;
mod shared;
#[cfg(feature = "async")]
mod task;
mod yields;

pub use bounded::BoundedSender;
pub use error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError};
pub use error::{TryRecvError, TrySendError};
pub use iter::{IntoIter, Iter, TryIter};
pub use receiver::Receiver;
#[cfg(feature = "async")]
pub use send_future::SendFuture;
pub use sender::Sender;
#[cfg(feature = "async")]
pub use task::AsyncReceiver;

use ganger_sync::sync::Arc;
use room::{Giver, Room};
use shared::Shared;

/// Creates a channel without a bound: any number of senders, one receiver.
///
/// Allocates the shared state of both sides, and a node for each item: see "Memory" in the crate's
/// documentation.
///
/// ```
/// let (sender, receiver) = ganger_mpsc::channel();
/// let other = sender.clone();
/// std::thread::spawn(move || sender.send(1).unwrap());
/// std::thread::spawn(move || other.send(2).unwrap());
/// assert_eq!(receiver.iter().sum::<i32>(), 3); // ends with the last sender
/// ```
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Shared::new();
    (
        Sender::new(Arc::clone(&shared)),
        Receiver::new(shared, None),
    )
}

/// Creates a channel with a bound: any number of senders, one receiver. A sender waits, or gets its
/// item back, while `capacity` items have been sent and not yet received.
///
/// The receiver wakes a waiting sender when it has made room for a quarter of the capacity, or
/// finds the channel empty; the longest-waiting sender comes first. So each side runs for a while,
/// instead of taking turns item by item. While the receiver does not receive, a sender may go on
/// waiting beside room for less than half of the capacity.
///
/// A send costs one more read-modify-write than on a channel without a bound, a receive one more
/// store. Each received quarter of the capacity costs a full fence.
///
/// # Panics
/// If `capacity` is 0: an item needs room until it is received.
///
/// ```
/// use ganger_mpsc::TrySendError;
///
/// let (sender, receiver) = ganger_mpsc::bounded(1);
/// sender.send(1).unwrap();
/// assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
/// let other = std::thread::spawn(move || sender.send(3)); // waits for room
/// assert_eq!(receiver.recv(), Ok(1));
/// assert_eq!(receiver.recv(), Ok(3));
/// assert!(other.join().unwrap().is_ok());
/// ```
#[must_use]
#[track_caller]
pub fn bounded<T>(capacity: usize) -> (BoundedSender<T>, Receiver<T>) {
    assert!(
        capacity > 0,
        "a bounded channel needs room for at least one item"
    );
    let (shared, room) = (Shared::new(), std::sync::Arc::new(Room::new(capacity)));
    let giver = Giver::new(std::sync::Arc::clone(&room));
    (
        BoundedSender::new(Sender::new(Arc::clone(&shared)), room),
        Receiver::new(shared, Some(giver)),
    )
}
