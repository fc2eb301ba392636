//! The deques, last in, first out.

use super::{BATCH, Deque};

/// `ganger_deque::Worker`.
pub(super) struct Ganger(ganger_deque::Worker<u64>);

impl Deque for Ganger {
    const NAME: &'static str = "ganger-deque";
    type Stealer = ganger_deque::Stealer<u64>;

    fn with_room(items: usize) -> Self {
        Self(ganger_deque::Worker::with_capacity(items))
    }

    #[inline]
    fn push(&self, item: u64) {
        self.0.push(item);
    }

    #[inline]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn expose(&self) {
        self.0.expose();
    }

    fn stealer(&self) -> Self::Stealer {
        self.0.stealer()
    }

    #[inline]
    fn steal(from: &Self::Stealer, _: &Self) -> Option<u64> {
        from.steal().success()
    }

    #[inline]
    fn steal_half(from: &Self::Stealer, own: &Self) -> bool {
        from.steal_half_into(&own.0, BATCH).is_success()
    }

    #[inline]
    fn is_empty(from: &Self::Stealer, _: &Self) -> bool {
        from.is_empty()
    }
}

/// Its capacity cannot be chosen: it starts with 64, and halves itself when three quarters are
/// empty.
pub(super) struct Crossbeam(crossbeam_deque::Worker<u64>);

impl Deque for Crossbeam {
    const NAME: &'static str = "crossbeam-deque";
    type Stealer = crossbeam_deque::Stealer<u64>;

    fn with_room(_items: usize) -> Self {
        Self(crossbeam_deque::Worker::new_lifo())
    }

    #[inline]
    fn push(&self, item: u64) {
        self.0.push(item);
    }

    #[inline]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn stealer(&self) -> Self::Stealer {
        self.0.stealer()
    }

    #[inline]
    fn steal(from: &Self::Stealer, _: &Self) -> Option<u64> {
        from.steal().success()
    }

    #[inline]
    fn steal_half(from: &Self::Stealer, own: &Self) -> bool {
        from.steal_batch_with_limit(&own.0, BATCH).is_success()
    }

    #[inline]
    fn is_empty(from: &Self::Stealer, _: &Self) -> bool {
        from.is_empty()
    }
}

/// The deque of st3, of a fixed size.
pub(super) struct St3(st3::lifo::Worker<u64>);

impl Deque for St3 {
    const NAME: &'static str = "st3";
    type Stealer = st3::lifo::Stealer<u64>;

    fn with_room(items: usize) -> Self {
        Self(st3::lifo::Worker::new(items))
    }

    #[inline]
    fn push(&self, item: u64) {
        self.0.push(item).expect("a deque with enough room");
    }

    #[inline]
    fn pop(&self) -> Option<u64> {
        self.0.pop()
    }

    fn stealer(&self) -> Self::Stealer {
        self.0.stealer()
    }

    /// Steals a batch of 1, the simplest steal of an item.
    #[inline]
    fn steal(from: &Self::Stealer, own: &Self) -> Option<u64> {
        let stolen = from.steal_and_pop(&own.0, |_| 1);
        stolen.ok().map(|(item, _)| item)
    }

    #[inline]
    fn steal_half(from: &Self::Stealer, own: &Self) -> bool {
        let half = |items: usize| (items - items / 2).min(BATCH);
        from.steal(&own.0, half).is_ok()
    }

    /// Returns whether a steal of no items fails and sees none: a stealer tells the number of items
    /// only to the function that chooses how many to take.
    #[inline]
    fn is_empty(from: &Self::Stealer, own: &Self) -> bool {
        let mut items = 0;
        let none = |seen| {
            items = seen;
            0
        };
        from.steal(&own.0, none).is_err() && items == 0
    }
}
