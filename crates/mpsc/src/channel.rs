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
//! 1. Push. On `Unparked`, leave a token in the parker, and wake the task if there is one.
//! 2. The last sender to go seals the queue. If the receiver had parked, as in 1.
//!
//! **Receiver**
//! 1. Take the oldest item of its own backlog; if that is empty, drain the queue into it.
//! 2. Nothing there: closed and empty is the end. Else park the queue, then sleep in the parker.
//! 3. Awake again: take the park back, whether or not the token was this park's, and back to 1.
//!    A task leaves its waker before it parks, and does not take the park back.
//!
//! **Why no item is missed.** The queue refuses to park over an item or over its end, and after
//! that the next push or seal has the token. A token left behind by a sleep that ended at its
//! deadline can only end a later sleep early, and every sleep is followed by another look.

use crate::room::Room;
use crate::{BoundedSender, Queue, Receiver, Sender};
use ganger_sync::Parker;
use ganger_sync::atomic::AtomicUsize;
use ganger_sync::sync::Arc;
#[cfg(feature = "async")]
use ganger_sync::sync::{Mutex, lock};
#[cfg(feature = "async")]
use std::task::Waker;
use std::time::Duration;

/// What the two sides share.
pub(crate) struct Shared<T> {
    /// Senders push and seal; the receiver drains, parks and closes.
    pub(crate) queue: Queue<T>,
    /// The receiver sleeps here; whoever has the queue's token wakes it.
    parker: Parker,
    /// The task that waits for an item. Written by the receiver before it parks, taken by whoever
    /// has the queue's token.
    #[cfg(feature = "async")]
    waker: Mutex<Option<Waker>>,
    /// What a bounded channel has room for.
    pub(crate) room: Option<Room>,
    /// How many senders there are. Changed by senders; read by the one that takes it to zero.
    pub(crate) senders: AtomicUsize,
}

impl<T> Shared<T> {
    fn new(room: Option<Room>) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::new(),
            parker: Parker::new(),
            #[cfg(feature = "async")]
            waker: Mutex::new(None),
            room,
            senders: AtomicUsize::new(1),
        })
    }

    /// Wakes the receiver. The caller has the queue's token.
    #[cold]
    pub(crate) fn wake(&self) {
        self.parker.unpark();
        #[cfg(feature = "async")]
        {
            // A waker is foreign code: it runs without the lock.
            let waker = lock(&self.waker).take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Blocks the receiver until somebody wakes it, or until `timeout` has passed.
    pub(crate) fn sleep(&self, timeout: Option<Duration>) {
        match timeout {
            None => self.parker.park(),
            Some(timeout) => {
                self.parker.park_timeout(timeout);
            }
        }
    }

    /// Has `waker` woken in the place of the thread from now on.
    #[cfg(feature = "async")]
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let is_there = |old: &Waker| old.will_wake(waker);
        if lock(&self.waker).as_ref().is_some_and(is_there) {
            return;
        }
        // Wakers are foreign code: the new one is cloned, and the old one dropped, without the lock.
        let new = waker.clone();
        let _old = lock(&self.waker).replace(new);
    }

    /// Has no task woken from now on.
    #[cfg(feature = "async")]
    pub(crate) fn forget_waker(&self) {
        let _old = lock(&self.waker).take();
    }
}

/// A channel without a bound: any number of senders, one receiver.
///
/// One allocation for what the two sides share, and a node for each item: see "Memory" in the crate's
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
    let shared = Shared::new(None);
    (Sender::new(Arc::clone(&shared)), Receiver::new(shared))
}

/// A channel with a bound: any number of senders, who wait or get their item back when `capacity`
/// items have been sent and not yet received; one receiver.
///
/// It costs one more read-modify-write for a send, and one more and a full fence for a receive, than
/// one without a bound.
///
/// # Panics
/// If `capacity` is 0: there is no way to hand an item over without room for it.
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
    let shared = Shared::new(Some(Room::new(capacity)));
    (
        BoundedSender::new(Sender::new(Arc::clone(&shared))),
        Receiver::new(shared),
    )
}
