//! The receiving side of a channel.

use super::backlog::Backlog;
use super::error::{RecvError, RecvTimeoutError, TryRecvError};
use super::room::Giver;
use super::shared::Shared;
use super::yields::Yields;
use crate::list::Batch;
use crate::queue::{Closing, Park};
use ganger_sync::hint;
use ganger_sync::sync::Arc;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::{Duration, Instant};

/// How often a waiting receiver pauses before it yields. In a model no time passes.
const SPINS: u32 = if cfg!(ganger_loom) { 0 } else { 7 };

/// How often a waiting receiver yields before it sleeps, as long as yielding pays.
const YIELDS: u32 = if cfg!(ganger_loom) { 0 } else { 3 };

/// Receives from any number of [`Sender`](crate::Sender)s. Only one thread at a time can use it.
///
/// The receiver takes all items out of the shared queue by one operation into its own backlog. So
/// most receives touch no shared memory. Dropping the receiver closes the channel and drops the
/// remaining items.
///
/// ```compile_fail
/// fn shared<T: Sync>() {}
/// shared::<ganger_mpsc::Receiver<u8>>(); // one thread at a time
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// Items drained and not yet received: older than all items in the queue.
    backlog: Backlog<T>,
    /// Gives places back, if the channel has a bound.
    giver: Option<Giver>,
    yields: Yields,
}

// No foreign code runs while the backlog changes.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Arc<Shared<T>>, giver: Option<Giver>) -> Self {
        Self {
            shared,
            giver,
            backlog: Backlog::new(),
            yields: Yields::new(),
        }
    }

    /// Takes the oldest item, if any. Never blocks; O(1), amortised over the drained items.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`] if the channel is empty, [`TryRecvError::Disconnected`] if it is
    /// empty and no item will come.
    ///
    /// ```
    /// use ganger_mpsc::TryRecvError;
    ///
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    /// sender.send(1).unwrap();
    /// drop(sender);
    /// assert_eq!(receiver.try_recv(), Ok(1));
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.backlog.pop(&self.shared.queue) {
            Some(item) => {
                if let Some(giver) = &self.giver {
                    giver.give(1);
                }
                Ok(item)
            }
            None => Err(self.found_nothing()),
        }
    }

    /// Takes the oldest item; blocks while the channel is empty. The thread sleeps while it waits.
    ///
    /// # Errors
    /// [`RecvError`] if the channel is empty and no item will come.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// std::thread::spawn(move || sender.send(1).unwrap());
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert!(receiver.recv().is_err());
    /// ```
    pub fn recv(&self) -> Result<T, RecvError> {
        loop {
            match self.try_recv() {
                Ok(item) => return Ok(item),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => self.sleep(None),
            }
        }
    }

    /// Takes the oldest item; blocks while the channel is empty, but at most for `timeout`. The
    /// thread sleeps while it waits.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`] if no item came in time, [`RecvTimeoutError::Disconnected`] if
    /// the channel is empty and no item will come.
    ///
    /// ```
    /// use ganger_mpsc::RecvTimeoutError;
    /// use std::time::Duration;
    ///
    /// let (_sender, receiver) = ganger_mpsc::channel::<u8>();
    /// let received = receiver.recv_timeout(Duration::from_millis(1));
    /// assert_eq!(received, Err(RecvTimeoutError::Timeout));
    /// ```
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let Some(deadline) = Instant::now().checked_add(timeout) else {
            return Ok(self.recv()?);
        };
        loop {
            match self.try_recv() {
                Ok(item) => return Ok(item),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(RecvTimeoutError::Timeout);
            }
            self.sleep(Some(left));
        }
    }

    /// Takes all items, the oldest first. Never blocks; O(n) in the items drained.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send_all(1..=3).unwrap();
    /// assert_eq!(receiver.recv(), Ok(1));
    /// assert_eq!(receiver.drain().len(), 2);
    /// ```
    pub fn drain(&self) -> Batch<T> {
        let batch = self.backlog.take(&self.shared.queue);
        if let Some(giver) = &self.giver {
            giver.give(batch.len());
            giver.look();
        }
        batch
    }

    /// Closes the channel and takes all items. From now on senders get their items back, and
    /// receives find nothing. Never blocks; O(n) in the items drained. Later calls find nothing.
    ///
    /// ```
    /// use ganger_mpsc::TryRecvError;
    ///
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send(1).unwrap();
    /// assert_eq!(receiver.close().len(), 1);
    /// assert!(sender.send(2).is_err());
    /// assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
    /// ```
    pub fn close(&self) -> Batch<T> {
        let Closing { batch, parked } = self.shared.queue.close();
        let mut rest = self.backlog.take_own();
        rest.append(batch);
        self.end_waits();
        if parked {
            // A task had parked, and has not polled since.
            self.shared.wake();
        }
        rest
    }

    /// Returns how many items are sent and not yet received. More may come at any moment. O(n) in
    /// the undrained items, so not for every turn of a loop.
    ///
    /// ```
    /// let (sender, receiver) = ganger_mpsc::channel();
    /// sender.send_all(1..=3).unwrap();
    /// assert_eq!(receiver.recv(), Ok(1));
    /// sender.send(4).unwrap();
    /// assert_eq!(receiver.len(), 3);
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        // SAFETY: only the receiver drains and closes the queue, and it does nothing else
        // meanwhile.
        self.backlog.len() + unsafe { self.shared.queue.count() }
    }

    /// Returns whether the channel is empty at this moment. O(1).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.backlog.len() == 0 && self.shared.queue.is_empty()
    }

    /// Returns whether no more items will be sent: the receiver has closed the channel, or all
    /// senders are gone. Once true, it stays true. O(1).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.queue.is_closed()
    }

    #[cfg(feature = "async")]
    pub(super) fn shared(&self) -> &Shared<T> {
        &self.shared
    }

    /// Returns why the receiver has no item. A separate function, so that the common path stays
    /// small.
    #[inline(never)]
    fn found_nothing(&self) -> TryRecvError {
        if let Some(giver) = &self.giver {
            giver.look();
        }
        // Not `is_closed`: an item, and then the end, may have come since the drain.
        if self.shared.queue.is_finished() {
            TryRecvError::Disconnected
        } else {
            TryRecvError::Empty
        }
    }

    /// Wakes the senders that wait for room, because the channel is closed.
    fn end_waits(&self) {
        if let Some(giver) = &self.giver {
            giver.end();
        }
    }

    /// Waits for a few microseconds, because a sleep and a wake-up take longer, and returns whether
    /// the queue has an item or is closed. First it makes longer and longer pauses, in which
    /// senders have the queue to themselves. Then it lets other threads run, as long as yielding
    /// pays.
    fn spin(&self) -> bool {
        let queue = &self.shared.queue;
        let has_changed = || !queue.is_empty() || queue.is_closed();
        (0..SPINS).any(|spin| {
            (0..1 << spin).for_each(|_| hint::spin_loop());
            has_changed()
        }) || self.yields.any(YIELDS, has_changed)
    }

    /// Blocks until an item or the end may have come, or until `timeout` has passed. The call may
    /// return early.
    fn sleep(&self, timeout: Option<Duration>) {
        if self.spin() {
            return;
        }
        match self.shared.queue.park() {
            Park::Parked => {}
            Park::NotEmpty | Park::Closed => return,
        }
        self.shared.sleep(timeout);
        // The park is still set if the deadline came first, or if the token was left by an earlier
        // sleep. If a sender already has this park's token, the token ends the next sleep early.
        // This does no harm. Waiting for the sender would: it may be suspended.
        let _taken_back = self.shared.queue.cancel_park();
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let rest = self.shared.queue.close();
        self.end_waits();
        #[cfg(feature = "async")]
        self.shared.forget_waker();
        drop(self.backlog.take_own());
        drop(rest);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("queue", &self.shared.queue)
            .field("backlog", &self.backlog)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(ganger_loom)))]
mod tests {
    use crate::{RecvTimeoutError, channel};
    use std::cell::RefCell;
    use std::time::Duration;

    /// Records its drop.
    struct Item<'a>(u8, &'a RefCell<Vec<u8>>);

    impl Drop for Item<'_> {
        fn drop(&mut self) {
            self.1.borrow_mut().push(self.0);
        }
    }

    #[test]
    fn what_is_left_is_dropped_in_order() {
        let dropped = RefCell::new(Vec::new());
        let (sender, receiver) = channel();
        let items = |numbers: std::ops::Range<u8>| numbers.map(|number| Item(number, &dropped));
        assert!(sender.send_all(items(0..3)).is_ok());
        drop(receiver.recv());
        assert!(sender.send_all(items(3..6)).is_ok());
        drop(receiver);
        assert_eq!(*dropped.borrow(), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_receive_that_times_out_takes_its_park_back() {
        let (_sender, receiver) = channel::<u8>();
        let received = receiver.recv_timeout(Duration::from_millis(2));
        assert_eq!(received, Err(RecvTimeoutError::Timeout));
        let shown = format!("{receiver:?}");
        assert_eq!(shown, "Receiver { queue: Queue(Empty), backlog: 0, .. }");
    }
}
