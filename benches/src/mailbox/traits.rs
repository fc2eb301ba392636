//! What a workload may ask of a queue.

use ganger_mpsc::Batch;

/// The consumer's side of an unbounded queue of `P`.
pub trait Mailbox<P>: Sized + 'static {
    /// What the tables call it: the name of its package.
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

    /// Takes the oldest item if there is one.
    fn try_recv(&mut self) -> Option<P>;

    /// Frees what the calling thread has kept of queues that are gone, if it does that.
    fn forget() {}
}

/// A queue whose consumer can sleep.
pub trait Waits<P>: Mailbox<P> {
    /// Takes the oldest item, and sleeps until there is one; `None` when there is none and all
    /// producers are gone.
    fn recv(&mut self) -> Option<P>;
}

/// A queue that gives all it has at once.
pub trait Drains<P>: Mailbox<P> {
    /// Takes everything.
    fn drain(&mut self) -> Batch<P>;
}
