//! The channel: a [`Queue`] with somebody to sleep on it.
//!
//! **Problem.** The queue says who has to wake the consumer, but does not wake anybody, and does
//! not know how many pushers there are. A channel has senders that come and go, and a receiver that
//! blocks.
//!
//! **Rejected.** A condition variable that every sender signals: a lock on the way of every send. A
//! count of senders that the receiver reads after it parked: two locations, hence a full fence on
//! both sides.
//!
//! **Sender**
//! 1. Push. On `Unparked`, leave a token in the parker.
//! 2. The last sender to go seals the queue. If the receiver had parked, leave a token.
//!
//! **Receiver**
//! 1. Take the oldest item of its own backlog; if that is empty, drain the queue into it.
//! 2. Nothing there: closed and empty is the end. Else park the queue, then sleep in the parker.
//! 3. Awake again: take the park back, whether or not the token was this park's, and back to 1.
//!
//! **Why no item is missed.** The queue refuses to park over an item or over its end, and after
//! that the next push or seal has the token. A token left behind by a sleep that ended at its
//! deadline can only end a later sleep early, and every sleep is followed by another look.

use crate::{Queue, Receiver, Sender};
use ganger_sync::Parker;
use ganger_sync::atomic::AtomicUsize;
use ganger_sync::sync::Arc;

/// What the two sides share.
pub(crate) struct Shared<T> {
    /// Senders push and seal; the receiver drains, parks and closes.
    pub(crate) queue: Queue<T>,
    /// The receiver sleeps here; whoever has the queue's token wakes it.
    pub(crate) parker: Parker,
    /// How many senders there are. Changed by senders; read by the one that takes it to zero.
    pub(crate) senders: AtomicUsize,
}

/// A channel without a bound: any number of senders, one receiver.
///
/// One allocation for what the two sides share, and one for each item sent.
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
    let shared = Arc::new(Shared {
        queue: Queue::new(),
        parker: Parker::new(),
        senders: AtomicUsize::new(1),
    });
    (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
}
