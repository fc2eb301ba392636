//! The operations of a deque in workloads.

/// The limit of items of [`Stealer::steal_half`]: crossbeam-deque's own bound, for all.
pub const BATCH: usize = 32;

/// The owner's side of a deque of numbers.
pub trait Deque: Send + Sized + 'static {
    /// Its name in the tables.
    const NAME: &'static str;

    /// The thieves' side.
    type Stealer: Stealer<Self>;

    /// Creates an empty deque, with room for `items` if it takes such an argument; a deque that
    /// cannot grow never gets more.
    fn with_room(items: usize) -> Self;

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// If a deque that cannot grow is full.
    fn push(&self, item: u64);

    /// Takes the newest item.
    fn pop(&self) -> Option<u64>;

    /// Makes the next steal cheap, if the deque has a means.
    fn expose(&self) {}

    /// A thief's handle.
    fn stealer(&self) -> Self::Stealer;
}

/// The thieves' side. Nothing is tried again: "another thread was faster" counts as nothing taken.
///
/// Every method is given the thief's own deque, because st3 steals by way of it.
pub trait Stealer<D>: Send + 'static {
    /// Takes the oldest item.
    fn steal(&self, own: &D) -> Option<u64>;

    /// Moves half of the items, rounded up, the oldest, at most [`BATCH`] of them, to the thief's
    /// own deque; says whether there were any.
    fn steal_half(&self, own: &D) -> bool;

    /// Returns whether the deque is empty. Takes nothing.
    fn is_empty(&self, own: &D) -> bool;
}
