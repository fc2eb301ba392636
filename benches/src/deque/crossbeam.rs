//! crossbeam-deque, last in, first out. Its capacity cannot be chosen: it starts with 64, and
//! halves itself when three quarters are empty.

use super::traits::{BATCH, Deque, Stealer};
use crossbeam_deque::Worker;

/// `crossbeam_deque::Worker`.
#[derive(Debug)]
pub struct Crossbeam(Worker<u64>);

impl Deque for Crossbeam {
    const NAME: &'static str = "crossbeam-deque";
    type Stealer = crossbeam_deque::Stealer<u64>;

    fn with_room(_items: usize) -> Self {
        Self(Worker::new_lifo())
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
}

impl Stealer<Crossbeam> for crossbeam_deque::Stealer<u64> {
    #[inline]
    fn steal(&self, _own: &Crossbeam) -> Option<u64> {
        self.steal().success()
    }

    #[inline]
    fn steal_half(&self, own: &Crossbeam) -> bool {
        self.steal_batch_with_limit(&own.0, BATCH).is_success()
    }

    #[inline]
    fn is_empty(&self, _own: &Crossbeam) -> bool {
        self.is_empty()
    }
}
