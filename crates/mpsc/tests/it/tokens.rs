//! Millions of operations by many threads: as many wake-ups as parks, and an account of every item.
//! `GANGER_STRESS=10` makes the tests ten times as long.
#![cfg(not(ganger_loom))]

use crate::support::{Item, LOST, Order, scaled};
use ganger_mpsc::{Closed, Park, Pushed, Queue, SendError, channel};
use ganger_sync::Parker;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const PRODUCERS: usize = 8;

/// Returns the least number of operations in a test: over ten million in optimised builds.
fn operations() -> usize {
    scaled(if cfg!(debug_assertions) {
        3_000_000
    } else {
        12_000_000
    })
}

/// A queue whose consumer sleeps, with counts of its operations.
struct Mailbox {
    queue: Queue<Item>,
    parker: Parker,
    /// Wake-ups handed out.
    tokens: AtomicUsize,
    pushes: AtomicUsize,
}

/// The consumer's counts.
#[derive(Debug, Default)]
struct Consumed {
    drains: usize,
    parks: usize,
    cancelled: usize,
}

impl Mailbox {
    fn new() -> Self {
        Self {
            queue: Queue::new(),
            parker: Parker::new(),
            tokens: AtomicUsize::new(0),
            pushes: AtomicUsize::new(0),
        }
    }

    fn wake(&self) {
        // Ordering: Relaxed, because it is read after the threads have ended.
        self.tokens.fetch_add(1, Ordering::Relaxed);
        self.parker.unpark();
    }

    /// Wakes the consumer if the push obliges the caller to.
    fn settle<T>(&self, pushed: Result<Pushed, Closed<T>>) -> Result<(), T> {
        match pushed.map_err(Closed::into_inner)? {
            Pushed::First | Pushed::Queued => {}
            Pushed::Unparked => self.wake(),
        }
        Ok(())
    }

    /// Pushes items `0..count`, every fourth time three together. Returns the refused items. Now
    /// and then it waits until the consumer has taken all, and is about to sleep.
    fn produce(&self, producer: usize, count: usize) -> Vec<Item> {
        let mut refused = Vec::new();
        let mut numbers = 0..count;
        let burst = 128 << (producer % 4);
        for push in 0.. {
            let group = if push % 4 == 0 { 3 } else { 1 };
            let mut items = numbers
                .by_ref()
                .take(group)
                .map(|number| (producer, number));
            if push % 4 == 0 {
                if let Err(items) = self.settle(self.queue.push_all(items)) {
                    refused.extend(items);
                }
            } else if let Some(item) = items.next() {
                refused.extend(self.settle(self.queue.push(item)).err());
            }
            while push % burst == 0 && !self.queue.is_empty() {
                thread::yield_now();
            }
            if numbers.is_empty() {
                // Ordering: Relaxed, because it is read after the threads have ended.
                self.pushes.fetch_add(push + 1, Ordering::Relaxed);
                break;
            }
        }
        refused
    }

    /// Drains and sleeps until the queue is closed and empty. Calls `enough` once, when `most`
    /// items have come.
    fn consume(&self, order: &mut Order, most: usize, enough: impl FnOnce()) -> Consumed {
        let mut consumed = Consumed::default();
        let (mut received, mut enough) = (0, Some(enough));
        loop {
            let batch = self.queue.drain();
            consumed.drains += 1;
            received += batch.len();
            batch.into_iter().for_each(|item| order.check(item));
            if received >= most
                && let Some(enough) = enough.take()
            {
                enough();
            }
            match self.queue.park() {
                Park::NotEmpty => continue,
                Park::Closed => break,
                Park::Parked => consumed.parks += 1,
            }
            // A park in three is taken back, unless another thread has its token.
            if consumed.parks.is_multiple_of(3) && self.queue.cancel_park() {
                consumed.cancelled += 1;
            } else {
                assert!(self.parker.park_timeout(LOST), "a wake-up was lost");
            }
        }
        consumed
    }
}

/// Has producers push `count` items each, and closes the queue when `most` have come. Returns the
/// number of operations, and how the items ended: drained, returned by the close, or refused.
fn round(count: usize, most: usize) -> (usize, [usize; 3]) {
    let mailbox = Mailbox::new();
    let close = Parker::new();
    let mut order = Order::new(PRODUCERS);
    let (consumed, closed, refused) = thread::scope(|scope| {
        let (mailbox, close) = (&mailbox, &close);
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| scope.spawn(move || mailbox.produce(producer, count)))
            .collect();
        let closer = scope.spawn(move || {
            close.park();
            let closing = mailbox.queue.close();
            if closing.parked {
                mailbox.wake();
            }
            closing.batch
        });
        let consumed = mailbox.consume(&mut order, most, || close.unpark());
        let closed = closer.join().unwrap();
        let refused: Vec<_> = producers
            .into_iter()
            .flat_map(|producer| producer.join().unwrap())
            .collect();
        (consumed, closed, refused)
    });
    let ends = [closed.len(), refused.len()];
    let received = PRODUCERS * count - ends[0] - ends[1];
    // For each producer, the drained items come first, then the items returned by the close, then
    // the refused items.
    closed.into_iter().for_each(|item| order.check(item));
    refused.into_iter().for_each(|item| order.check(item));
    assert!(order.is_complete(count), "items were lost");

    // Ordering: Relaxed, because the threads have ended.
    let tokens = mailbox.tokens.load(Ordering::Relaxed);
    let Consumed {
        drains,
        parks,
        cancelled,
    } = consumed;
    assert_eq!(tokens, parks - cancelled, "{consumed:?}");
    let left = mailbox.parker.park_timeout(Duration::ZERO);
    assert!(!left, "a wake-up too many");
    // Ordering: Relaxed, because the threads have ended.
    let pushes = mailbox.pushes.load(Ordering::Relaxed);
    let operations = pushes + drains + parks + cancelled;
    (operations, [received, ends[0], ends[1]])
}

#[test]
fn as_many_wake_ups_as_parks_and_every_item_once() {
    const COUNT: usize = 30_000;
    /// On a busy machine some ends are rare: many rounds may pass before each has happened.
    const MAX_ROUNDS: usize = 100_000;
    let (mut operations, mut ends) = (operations(), [0; 3]);
    for number in 1..=MAX_ROUNDS {
        // The queue is closed in the middle, near the end, or just after the start.
        let most = PRODUCERS * COUNT * (number * 37 % 101) / 101;
        let (done, ended) = round(COUNT, most);
        for (sum, ended) in ends.iter_mut().zip(ended) {
            *sum += ended;
        }
        operations = operations.saturating_sub(done);
        if operations == 0 && ends.iter().all(|end| *end > 0) {
            break;
        }
    }
    assert!(ends.iter().all(|end| *end > 0), "never happened: {ends:?}");
}

/// Checks that every item comes out of a channel once, although the receiver closes it.
#[test]
fn a_channel_that_is_closed_loses_nothing() {
    const COUNT: usize = 20_000;
    let mut items = operations() / 2;
    let mut ends = [0; 3];
    for number in 1_usize.. {
        let most = PRODUCERS * COUNT * (number * 37 % 101) / 101;
        let (sender, receiver) = channel::<Item>();
        let mut order = Order::new(PRODUCERS);
        let mut enter = |end: usize, item| {
            order.check(item);
            ends[end] += 1;
        };
        thread::scope(|scope| {
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|producer| {
                    let sender = sender.clone();
                    scope.spawn(move || {
                        let items = (0..COUNT).map(|number| {
                            // However late the receiver closes, the last item comes later.
                            while number == COUNT - 1 && !sender.is_closed() {
                                thread::yield_now();
                            }
                            (producer, number)
                        });
                        let refused = items.filter_map(|item| sender.send(item).err());
                        refused.map(SendError::into_inner).collect::<Vec<_>>()
                    })
                })
                .collect();
            for _ in 0..most {
                enter(0, receiver.recv_timeout(LOST).unwrap());
            }
            receiver.close().into_iter().for_each(|item| enter(1, item));
            for producer in producers {
                producer
                    .join()
                    .unwrap()
                    .into_iter()
                    .for_each(|item| enter(2, item));
            }
        });
        assert!(order.is_complete(COUNT), "items were lost");
        items = items.saturating_sub(PRODUCERS * COUNT);
        if items == 0 {
            break;
        }
    }
    assert!(ends.iter().all(|end| *end > 0), "never happened: {ends:?}");
}
