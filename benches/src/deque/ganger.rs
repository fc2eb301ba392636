//! ganger-deque.

use super::traits::{BATCH, Deque, Stealer};
use ganger_deque::Worker;

/// `ganger_deque::Worker`.
#[derive(Debug)]
pub struct Ganger(Worker<u64>);

impl Deque for Ganger {
    const NAME: &'static str = "ganger-deque";
    type Stealer = ganger_deque::Stealer<u64>;

    fn with_room(items: usize) -> Self {
        Self(Worker::with_capacity(items))
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
}

impl Stealer<Ganger> for ganger_deque::Stealer<u64> {
    #[inline]
    fn steal(&self, _own: &Ganger) -> Option<u64> {
        self.steal().success()
    }

    #[inline]
    fn steal_half(&self, own: &Ganger) -> bool {
        self.steal_half_into(&own.0, BATCH).is_success()
    }

    #[inline]
    fn is_empty(&self, _own: &Ganger) -> bool {
        self.is_empty()
    }
}
