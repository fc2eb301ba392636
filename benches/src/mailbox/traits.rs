//! The operations of a queue in workloads.

use ganger_mpsc::Batch;

/// The consumer's side of an unbounded queue of `P`.
pub trait Mailbox<P>: Sized + 'static {
    /// Its name in the tables: the name of its package.
    const NAME: &'static str;

    /// The producers' side.
    type Sender: Clone + Send + 'static;

    /// An empty queue.
    fn channel() -> (Self::Sender, Self);

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// When the consumer is gone.
    fn send(sender: &Self::Sender, item: P);

    /// Takes the oldest item, if any.
    fn try_recv(&mut self) -> Option<P>;

    /// Frees the calling thread's cached memory of dropped queues, if the queue has such a cache.
    fn forget() {}
}

/// A queue whose consumer can sleep.
pub trait Waits<P>: Mailbox<P> {
    /// Takes the oldest item, and sleeps until an item comes; `None` if the queue is empty and all
    /// producers are gone.
    fn recv(&mut self) -> Option<P>;
}

/// A queue that gives all its items at once.
pub trait Drains<P>: Mailbox<P> {
    /// Takes everything.
    fn drain(&mut self) -> Batch<P>;
}
