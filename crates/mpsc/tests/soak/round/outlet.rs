//! The producer's side of the three kinds of links.

use ganger_mpsc::{
    Batch, BoundedSender, Closed, Pushed, Queue, Sealed, SendError, SendTimeoutError, Sender,
    TrySendError,
};
use ganger_sync::Parker;
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A sender of any kind.
pub(super) enum Outlet<'r, L> {
    Channel(Sender<L>),
    Bounded(BoundedSender<L>),
    Queue(Pusher<'r, L>),
}

/// A queue, with the parts that a channel would add to it, and with counters.
pub(super) struct Mailbox<L> {
    pub(super) queue: Queue<L>,
    /// The consumer sleeps here.
    pub(super) parker: Parker,
    /// The number of pushers. The drop of the last pusher seals the queue.
    pushers: AtomicUsize,
    /// How many pushes were the first since a drain, how many took a token, and whether the seal
    /// took a token.
    firsts: AtomicU64,
    push_tokens: AtomicU64,
    seal_tokens: AtomicU64,
}

/// Pushes into a mailbox, and wakes its consumer when obliged to.
pub(super) struct Pusher<'r, L> {
    mailbox: &'r Mailbox<L>,
    /// This pusher's own counts, so that pushers share nothing but the queue.
    firsts: Cell<u64>,
    tokens: Cell<u64>,
}

impl<L> Outlet<'_, L> {
    pub(super) fn send(&self, item: L) -> Result<(), L> {
        match self {
            Self::Channel(sender) => sender.send(item).map_err(SendError::into_inner),
            Self::Bounded(sender) => sender.send(item).map_err(SendError::into_inner),
            Self::Queue(pusher) => pusher.push(item),
        }
    }

    /// Sends all items: in turn, if a single push for all is not possible.
    pub(super) fn send_all(&self, items: impl Iterator<Item = L>) -> Result<(), Batch<L>> {
        match self {
            Self::Channel(sender) => sender.send_all(items).map_err(SendError::into_inner),
            Self::Queue(pusher) => pusher.push_all(items),
            Self::Bounded(sender) => {
                let refused = items.filter_map(|item| sender.send(item).err());
                let refused: Batch<L> = refused.map(SendError::into_inner).collect();
                if refused.is_empty() {
                    Ok(())
                } else {
                    Err(refused)
                }
            }
        }
    }

    /// Sends an item without waiting for room.
    pub(super) fn try_send(&self, item: L) -> Result<(), TrySendError<L>> {
        match self {
            Self::Bounded(sender) => sender.try_send(item),
            Self::Channel(_) | Self::Queue(_) => {
                self.send(item).map_err(TrySendError::Disconnected)
            }
        }
    }

    /// Sends an item, and waits for room no longer than `timeout`.
    pub(super) fn send_timeout(&self, item: L, timeout: Duration) -> Result<(), TrySendError<L>> {
        let Self::Bounded(sender) = self else {
            return self.try_send(item);
        };
        sender
            .send_timeout(item, timeout)
            .map_err(|error| match error {
                SendTimeoutError::Timeout(item) => TrySendError::Full(item),
                SendTimeoutError::Disconnected(item) => TrySendError::Disconnected(item),
            })
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Channel(sender) => sender.is_closed(),
            Self::Bounded(sender) => sender.is_closed(),
            Self::Queue(pusher) => pusher.mailbox.queue.is_closed(),
        }
    }
}

impl<L> Clone for Outlet<'_, L> {
    fn clone(&self) -> Self {
        match self {
            Self::Channel(sender) => Self::Channel(sender.clone()),
            Self::Bounded(sender) => Self::Bounded(sender.clone()),
            Self::Queue(pusher) => Self::Queue(pusher.clone()),
        }
    }
}

impl<L> Mailbox<L> {
    pub(super) fn new() -> Self {
        Self {
            queue: Queue::new(),
            parker: Parker::new(),
            pushers: AtomicUsize::new(0),
            firsts: AtomicU64::new(0),
            push_tokens: AtomicU64::new(0),
            seal_tokens: AtomicU64::new(0),
        }
    }

    pub(super) fn pusher(&self) -> Pusher<'_, L> {
        // Ordering: Relaxed, because another pusher keeps the count above zero, or this is the
        // first.
        self.pushers.fetch_add(1, Ordering::Relaxed);
        Pusher {
            mailbox: self,
            firsts: Cell::new(0),
            tokens: Cell::new(0),
        }
    }

    /// Returns how many pushes were the first, how many took a token, and how many seals took a
    /// token.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        // Ordering: Relaxed, because the threads have been joined.
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            of(&self.firsts),
            of(&self.push_tokens),
            of(&self.seal_tokens),
        )
    }
}

impl<L> Pusher<'_, L> {
    fn push(&self, item: L) -> Result<(), L> {
        self.note(self.mailbox.queue.push(item).map_err(Closed::into_inner)?);
        Ok(())
    }

    fn push_all(&self, items: impl Iterator<Item = L>) -> Result<(), Batch<L>> {
        self.note(
            self.mailbox
                .queue
                .push_all(items)
                .map_err(Closed::into_inner)?,
        );
        Ok(())
    }

    fn note(&self, pushed: Pushed) {
        match pushed {
            Pushed::Queued => {}
            Pushed::First => self.firsts.update(|firsts| firsts + 1),
            Pushed::Unparked => {
                self.tokens.update(|tokens| tokens + 1);
                self.mailbox.parker.unpark();
            }
        }
    }
}

impl<L> Clone for Pusher<'_, L> {
    fn clone(&self) -> Self {
        self.mailbox.pusher()
    }
}

impl<L> Drop for Pusher<'_, L> {
    fn drop(&mut self) {
        let mailbox = self.mailbox;
        // Ordering: Relaxed, because they are read after the threads have been joined.
        mailbox
            .firsts
            .fetch_add(self.firsts.get(), Ordering::Relaxed);
        mailbox
            .push_tokens
            .fetch_add(self.tokens.get(), Ordering::Relaxed);
        // Ordering: AcqRel pairs with the same operation of the other pushers: all their actions
        // happen before the seal.
        if mailbox.pushers.fetch_sub(1, Ordering::AcqRel) == 1
            && mailbox.queue.seal() == Sealed::Unparked
        {
            // Ordering: Relaxed, because it is read after the threads have been joined.
            mailbox.seal_tokens.fetch_add(1, Ordering::Relaxed);
            mailbox.parker.unpark();
        }
    }
}
