//! The queues.

use super::{Drains, Mailbox, Payload, Waits};
use concurrent_queue::ConcurrentQueue;
use crossbeam_queue::SegQueue;
use ganger_mpsc::{Batch, Queue, node_cache};
use std::sync::Arc;

/// A queue: its package, both sides, and its functions; `wait` where the consumer can sleep.
macro_rules! mailbox {
    ($(#[$doc:meta])* $name:ident, $package:literal, $sender:ty, $receiver:ty, $open:expr;
        send($to:ident, $item:ident) $send:expr; take($it:ident) $take:expr; $(wait $wait:expr;)?
        $(forget $forget:expr;)?) => {
        $(#[$doc])*
        pub(super) type $name<P> = $receiver;

        impl<P: Payload> Mailbox<P> for $receiver {
            const NAME: &'static str = $package;
            type Sender = $sender;

            fn channel() -> (Self::Sender, Self) {
                $open
            }

            #[inline]
            fn send($to: &Self::Sender, $item: P) {
                assert!($send, "the consumer is gone");
            }

            #[inline]
            fn try_recv(&mut self) -> Option<P> {
                let $it = self;
                $take
            }

            $(fn forget() {
                $forget
            })?
        }

        $(impl<P: Payload> Waits<P> for $receiver {
            #[inline]
            fn recv(&mut self) -> Option<P> {
                let $it = self;
                $wait
            }
        })?
    };
}

mailbox! {
    Ganger, "ganger-mpsc", ganger_mpsc::Sender<P>, ganger_mpsc::Receiver<P>, ganger_mpsc::channel();
    send(to, item) to.send(item).is_ok();
    take(it) ganger_mpsc::Receiver::try_recv(it).ok();
    wait ganger_mpsc::Receiver::recv(it).ok();
    forget node_cache::clear();
}

mailbox! {
    Std, "std", std::sync::mpsc::Sender<P>, std::sync::mpsc::Receiver<P>,
        std::sync::mpsc::channel();
    send(to, item) to.send(item).is_ok();
    take(it) std::sync::mpsc::Receiver::try_recv(it).ok();
    wait std::sync::mpsc::Receiver::recv(it).ok();
}

mailbox! {
    /// For many consumers, as all queues below but tokio's.
    Crossbeam, "crossbeam-channel", crossbeam_channel::Sender<P>, crossbeam_channel::Receiver<P>,
        crossbeam_channel::unbounded();
    send(to, item) to.send(item).is_ok();
    take(it) crossbeam_channel::Receiver::try_recv(it).ok();
    wait crossbeam_channel::Receiver::recv(it).ok();
}

mailbox! {
    Flume, "flume", flume::Sender<P>, flume::Receiver<P>, flume::unbounded();
    send(to, item) to.send(item).is_ok();
    take(it) flume::Receiver::try_recv(it).ok();
    wait flume::Receiver::recv(it).ok();
}

mailbox! {
    Kanal, "kanal", kanal::Sender<P>, kanal::Receiver<P>, kanal::unbounded();
    send(to, item) to.send(item).is_ok();
    take(it) kanal::Receiver::try_recv(it).ok().flatten();
    wait kanal::Receiver::recv(it).ok();
}

mailbox! {
    /// Needs no runtime.
    Tokio, "tokio", tokio::sync::mpsc::UnboundedSender<P>, tokio::sync::mpsc::UnboundedReceiver<P>,
        tokio::sync::mpsc::unbounded_channel();
    send(to, item) to.send(item).is_ok();
    take(it) tokio::sync::mpsc::UnboundedReceiver::try_recv(it).ok();
    wait it.blocking_recv();
}

mailbox! {
    /// A send without bounds never fails for lack of room.
    AsyncChannel, "async-channel", async_channel::Sender<P>, async_channel::Receiver<P>,
        async_channel::unbounded();
    send(to, item) to.try_send(item).is_ok();
    take(it) async_channel::Receiver::try_recv(it).ok();
    wait it.recv_blocking().ok();
}

mailbox! {
    Concurrent, "concurrent-queue", Arc<ConcurrentQueue<P>>, Arc<ConcurrentQueue<P>>, {
        let queue = Arc::new(ConcurrentQueue::unbounded());
        (Arc::clone(&queue), queue)
    };
    send(to, item) to.push(item).is_ok();
    take(it) it.pop().ok();
}

mailbox! {
    Seg, "crossbeam-queue", Arc<SegQueue<P>>, Arc<SegQueue<P>>, {
        let queue = Arc::new(SegQueue::new());
        (Arc::clone(&queue), queue)
    };
    send(to, item) {
        to.push(item);
        true
    };
    take(it) it.pop();
}

impl<P: Payload> Drains<P> for Ganger<P> {
    #[inline]
    fn drain(&mut self) -> Batch<P> {
        Ganger::drain(self)
    }
}

/// Ganger's queue, with the batch that its consumer has drained: as a scheduler uses it.
pub(super) struct Queued<P> {
    queue: Arc<Queue<P>>,
    batch: Batch<P>,
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
