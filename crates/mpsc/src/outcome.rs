//! What each operation of a [`Queue`](crate::Queue) tells its caller to do next.

use crate::Batch;

/// What a push displaced, and so what the pusher owes.
///
/// A consumer that sleeps by [`Queue::park`](crate::Queue::park) needs only [`Unparked`]: before it
/// parks it looks, and it cannot park over an item. One that never parks in the queue, because
/// something else says whether it runs, needs [`First`] as well: between two drains exactly one
/// pusher gets it.
///
/// [`First`]: Pushed::First
/// [`Unparked`]: Pushed::Unparked
#[must_use = "`Unparked` obliges the caller to wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pushed {
    /// The queue was empty and the consumer had not parked: this is the first push since the last
    /// drain.
    First,
    /// There were items already, so somebody else owes the wake-up. Nothing to do.
    Queued,
    /// The consumer had parked, and this push took the one token of that park: the caller must wake
    /// the consumer. What the consumer did before it parked happened before this.
    Unparked,
}

/// What became of the consumer's attempt to park.
#[must_use = "only after `Parked` will somebody wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Park {
    /// Parked: exactly one pusher or closer will get the token and wake the consumer, unless
    /// [`Queue::cancel_park`](crate::Queue::cancel_park) takes it back first.
    Parked,
    /// There are items: drain them.
    NotEmpty,
    /// The queue is closed and nothing is left in it: nothing will ever come.
    Closed,
}

/// What a seal displaced, and so what the sealer owes.
#[must_use = "`Unparked` obliges the caller to wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sealed {
    /// The consumer had not parked, or the queue was closed already. Nothing to do.
    Awake,
    /// The consumer had parked, and this call took the token: the caller must wake the consumer.
    Unparked,
}

/// What [`Queue::close`](crate::Queue::close) took out of the queue.
#[must_use = "`parked` obliges the caller to wake the consumer"]
#[derive(Debug)]
pub struct Closing<T> {
    /// The items that nobody had drained, the oldest first.
    pub batch: Batch<T>,
    /// The consumer had parked, and this call took the token: the caller must wake the consumer,
    /// unless it is the consumer.
    pub parked: bool,
}
