//! What a workload may ask of a deque.

/// The most items that [`Stealer::steal_half`] takes: crossbeam-deque's own bound, for all.
pub const BATCH: usize = 32;

/// The owner's side of a deque of numbers.
pub trait Deque: Send + Sized + 'static {
    /// What the tables call it.
    const NAME: &'static str;

    /// The thieves' side.
    type Stealer: Stealer<Self>;

    /// An empty deque. It has room for that many items if it can be told so; a deque that cannot
    /// grow is never given more.
    fn with_room(items: usize) -> Self;

    /// Adds an item as the newest.
    ///
    /// # Panics
    /// When a deque that cannot grow is full.
    fn push(&self, item: u64);

    /// Takes the newest item.
    fn pop(&self) -> Option<u64>;

    /// Does what makes the next steal cheap, if there is something to do.
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

    /// Whether there is nothing to take. Takes nothing.
    fn is_empty(&self, own: &D) -> bool;
}
