//! What each operation of a [`Queue`](super::Queue) tells its caller to do next.

use crate::list::Batch;
use std::error::Error;
use std::fmt;

/// What a push displaced, and so what the pusher owes.
///
/// A consumer that sleeps by [`Queue::park`](crate::Queue::park) needs [`Unparked`] alone, because
/// it cannot park over an item. A consumer that never parks in the queue, because something else
/// says whether it runs, needs [`First`]: between two drains exactly one pusher gets it.
///
/// [`First`]: Pushed::First
/// [`Unparked`]: Pushed::Unparked
#[must_use = "`Unparked` obliges the caller to wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pushed {
    /// The queue was empty, and the consumer had not parked: this is the first push since the last
    /// drain.
    First,
    /// There were items already, so the pusher of the first one owes the wake-up. Nothing to do.
    Queued,
    /// The consumer had parked, and this push took the one token of that park: the caller must wake
    /// the consumer. What the consumer did before it parked happens before this.
    Unparked,
}

/// What became of the consumer's attempt to park.
#[must_use = "the consumer is woken after `Parked` only"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Park {
    /// Parked: exactly one pusher or closer gets the token and wakes the consumer, unless
    /// [`Queue::cancel_park`](crate::Queue::cancel_park) takes the park back first.
    Parked,
    /// There are items: drain them.
    NotEmpty,
    /// The queue is closed and nothing is left in it: nothing comes any more.
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
    /// The items that no drain had taken, the oldest first.
    pub batch: Batch<T>,
    /// The consumer had parked, and this call took the token: the caller must wake the consumer,
    /// unless it is the consumer.
    pub parked: bool,
}

/// The error of a push: the queue is closed. What was to be pushed is inside.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> Closed<T> {
    /// What was to be pushed.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> fmt::Display for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pushing on a closed queue")
    }
}

impl<T> Error for Closed<T> {}

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Closed").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_error_needs_nothing_of_what_it_holds() {
        struct NoDebug;
        let error: Box<dyn Error> = Box::new(Closed(NoDebug));
        assert_eq!(error.to_string(), "pushing on a closed queue");
        assert_eq!(format!("{error:?}"), "Closed { .. }");
    }
}
