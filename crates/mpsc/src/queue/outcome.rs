//! The results of a [`Queue`](super::Queue)'s operations, with the obligations of their callers.

use crate::list::Batch;
use std::error::Error;
use std::fmt;

/// The value displaced by a push, with the pusher's obligation.
///
/// A consumer that sleeps by [`Queue::park`](crate::Queue::park) needs only [`Unparked`], because
/// it cannot park over an item. A consumer that never parks in the queue, because another mechanism
/// tells whether it runs, needs [`First`]: between two drains exactly one pusher gets it.
///
/// [`First`]: Pushed::First
/// [`Unparked`]: Pushed::Unparked
#[must_use = "`Unparked` obliges the caller to wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pushed {
    /// The queue was empty, and the consumer had not parked: this is the first push since the last
    /// drain.
    First,
    /// The queue had items, so the pusher of the first item owes the wake-up. Nothing to do.
    Queued,
    /// The consumer had parked, and this push took the park's only token: the caller must wake the
    /// consumer. The consumer's actions before the park happen before the return of this push.
    Unparked,
}

/// The result of the consumer's attempt to park.
#[must_use = "the consumer is woken after `Parked` only"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Park {
    /// Parked: exactly one pusher or closer gets the token and wakes the consumer, unless
    /// [`Queue::cancel_park`](crate::Queue::cancel_park) takes the park back first.
    Parked,
    /// The queue has items: drain them.
    NotEmpty,
    /// The queue is closed and empty: no item will come.
    Closed,
}

/// The value displaced by a seal, with the sealer's obligation.
#[must_use = "`Unparked` obliges the caller to wake the consumer"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sealed {
    /// The consumer had not parked, or the queue was closed already. Nothing to do.
    Awake,
    /// The consumer had parked, and this call took the token: the caller must wake the consumer.
    Unparked,
}

/// The result of [`Queue::close`](crate::Queue::close).
#[must_use = "`parked` obliges the caller to wake the consumer"]
#[derive(Debug)]
pub struct Closing<T> {
    /// The items that no drain had taken, the oldest first.
    pub batch: Batch<T>,
    /// True if the consumer had parked, and this call took the token: the caller must wake the
    /// consumer, unless it is the consumer.
    pub parked: bool,
}

/// The error of a push: the queue is closed. Contains the rejected item or items.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<T>(pub T);

impl<T> Closed<T> {
    /// Returns the rejected item or items.
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
