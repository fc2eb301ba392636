//! st3, last in, first out. It cannot grow.

use super::traits::{BATCH, Deque, Stealer};
use st3::lifo::Worker;

/// `st3::lifo::Worker`.
#[derive(Debug)]
pub struct St3(Worker<u64>);

impl Deque for St3 {
    const NAME: &'static str = "st3";
    type Stealer = st3::lifo::Stealer<u64>;

    fn with_room(items: usize) -> Self {
        Self(Worker::new(items))
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
}

impl Stealer<St3> for st3::lifo::Stealer<u64> {
    /// The simplest steal of an item is a batch of 1, whose last item is returned.
    #[inline]
    fn steal(&self, own: &St3) -> Option<u64> {
        let stolen = self.steal_and_pop(&own.0, |_| 1);
        stolen.ok().map(|(item, _)| item)
    }

    #[inline]
    fn steal_half(&self, own: &St3) -> bool {
        let half = |items: usize| (items - items / 2).min(BATCH);
        self.steal(&own.0, half).is_ok()
    }

    /// A stealer tells the number of items only to the function that chooses how many to take.
    #[inline]
    fn is_empty(&self, own: &St3) -> bool {
        let mut items = 0;
        let none = |seen| {
            items = seen;
            0
        };
        self.steal(&own.0, none).is_err() && items == 0
    }
}
