//! ganger-mpsc: its channel, and its queue alone.

use super::payload::Payload;
use super::traits::{Drains, Mailbox, Waits};
use ganger_mpsc::{Batch, Queue, channel, node_cache};
use std::fmt;
use std::sync::Arc;

/// The channel.
pub type Ganger<P> = ganger_mpsc::Receiver<P>;

/// The queue, with the batch that its consumer has drained: as a scheduler uses it.
pub struct Queued<P> {
    queue: Arc<Queue<P>>,
    batch: Batch<P>,
}

impl<P: Payload> Mailbox<P> for Ganger<P> {
    const NAME: &'static str = "ganger-mpsc";
    type Sender = ganger_mpsc::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        channel()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "the consumer is gone");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Ganger::try_recv(self).ok()
    }

    fn forget() {
        node_cache::clear();
    }
}

impl<P: Payload> Waits<P> for Ganger<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        Ganger::recv(self).ok()
    }
}

impl<P: Payload> Drains<P> for Ganger<P> {
    #[inline]
    fn drain(&mut self) -> Batch<P> {
        Ganger::drain(self)
    }
}

impl<P: Payload> Mailbox<P> for Queued<P> {
    const NAME: &'static str = "ganger-mpsc, Queue";
    type Sender = Arc<Queue<P>>;

    fn channel() -> (Self::Sender, Self) {
        let queue = Arc::new(Queue::new());
        let consumer = Self {
            queue: Arc::clone(&queue),
            batch: Batch::new(),
        };
        (queue, consumer)
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.push(item).is_ok(), "the queue is closed");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        if self.batch.is_empty() {
            self.batch = self.queue.drain();
        }
        self.batch.pop_front()
    }

    fn forget() {
        node_cache::clear();
    }
}

impl<P: Payload> Drains<P> for Queued<P> {
    #[inline]
    fn drain(&mut self) -> Batch<P> {
        debug_assert!(self.batch.is_empty(), "it is drained, or received from");
        self.queue.drain()
    }
}

impl<P> fmt::Debug for Queued<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").finish_non_exhaustive()
    }
}
