//! The peers of ganger-mpsc.

use super::payload::Payload;
use super::traits::{Mailbox, Waits};
use concurrent_queue::ConcurrentQueue;
use crossbeam_queue::SegQueue;
use std::sync::Arc;

const GONE: &str = "the consumer is gone";

/// The standard library's channel.
pub(super) type Std<P> = std::sync::mpsc::Receiver<P>;

/// crossbeam's channel, which is also for many consumers.
pub(super) type Crossbeam<P> = crossbeam_channel::Receiver<P>;

/// flume's channel, also for many consumers.
pub(super) type Flume<P> = flume::Receiver<P>;

/// kanal's channel, also for many consumers.
pub(super) type Kanal<P> = kanal::Receiver<P>;

/// tokio's channel, for which no runtime is needed.
pub(super) type Tokio<P> = tokio::sync::mpsc::UnboundedReceiver<P>;

/// async-channel, also for many consumers.
pub(super) type AsyncChannel<P> = async_channel::Receiver<P>;

/// A queue for many consumers, none of which can sleep.
pub(super) type Concurrent<P> = Arc<ConcurrentQueue<P>>;

/// crossbeam's queue for many consumers, none of which can sleep.
pub(super) type Seg<P> = Arc<SegQueue<P>>;

impl<P: Payload> Mailbox<P> for Std<P> {
    const NAME: &'static str = "std";
    type Sender = std::sync::mpsc::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        std::sync::mpsc::channel()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Std::try_recv(self).ok()
    }
}

impl<P: Payload> Waits<P> for Std<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        Std::recv(self).ok()
    }
}

impl<P: Payload> Mailbox<P> for Crossbeam<P> {
    const NAME: &'static str = "crossbeam-channel";
    type Sender = crossbeam_channel::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        crossbeam_channel::unbounded()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Crossbeam::try_recv(self).ok()
    }
}

impl<P: Payload> Waits<P> for Crossbeam<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        Crossbeam::recv(self).ok()
    }
}

impl<P: Payload> Mailbox<P> for Flume<P> {
    const NAME: &'static str = "flume";
    type Sender = flume::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        flume::unbounded()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Flume::try_recv(self).ok()
    }
}

impl<P: Payload> Waits<P> for Flume<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        Flume::recv(self).ok()
    }
}

impl<P: Payload> Mailbox<P> for Kanal<P> {
    const NAME: &'static str = "kanal";
    type Sender = kanal::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        kanal::unbounded()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Kanal::try_recv(self).ok().flatten()
    }
}

impl<P: Payload> Waits<P> for Kanal<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        Kanal::recv(self).ok()
    }
}

impl<P: Payload> Mailbox<P> for Tokio<P> {
    const NAME: &'static str = "tokio";
    type Sender = tokio::sync::mpsc::UnboundedSender<P>;

    fn channel() -> (Self::Sender, Self) {
        tokio::sync::mpsc::unbounded_channel()
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        Tokio::try_recv(self).ok()
    }
}

impl<P: Payload> Waits<P> for Tokio<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        self.blocking_recv()
    }
}

impl<P: Payload> Mailbox<P> for AsyncChannel<P> {
    const NAME: &'static str = "async-channel";
    type Sender = async_channel::Sender<P>;

    fn channel() -> (Self::Sender, Self) {
        async_channel::unbounded()
    }

    /// A send to a channel without bounds never fails for lack of room.
    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.try_send(item).is_ok(), "{GONE}");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        AsyncChannel::try_recv(self).ok()
    }
}

impl<P: Payload> Waits<P> for AsyncChannel<P> {
    #[inline]
    fn recv(&mut self) -> Option<P> {
        self.recv_blocking().ok()
    }
}

impl<P: Payload> Mailbox<P> for Concurrent<P> {
    const NAME: &'static str = "concurrent-queue";
    type Sender = Self;

    fn channel() -> (Self::Sender, Self) {
        let queue = Arc::new(ConcurrentQueue::unbounded());
        (Arc::clone(&queue), queue)
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        assert!(sender.push(item).is_ok(), "the queue is closed");
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        self.pop().ok()
    }
}

impl<P: Payload> Mailbox<P> for Seg<P> {
    const NAME: &'static str = "crossbeam-queue";
    type Sender = Self;

    fn channel() -> (Self::Sender, Self) {
        let queue = Arc::new(SegQueue::new());
        (Arc::clone(&queue), queue)
    }

    #[inline]
    fn send(sender: &Self::Sender, item: P) {
        sender.push(item);
    }

    #[inline]
    fn try_recv(&mut self) -> Option<P> {
        self.pop()
    }
}
