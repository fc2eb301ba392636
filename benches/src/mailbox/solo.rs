//! A single thread: bursts to itself, waiting items, and allocations.

use super::counting::counted;
use super::{Drains, Mailbox, Payload, Workload, weight_to};
use crate::contest::{Run, nanoseconds};
use ganger_mpsc::{Queue, node_cache};
use std::time::{Duration, Instant};

/// The time of a message, sent and received.
#[derive(Clone, Copy)]
pub(super) struct OneThread {
    /// How many messages are sent before the first is received.
    pub(super) burst: u64,
    /// How many bursts.
    pub(super) rounds: u64,
}

impl<P: Payload> Workload<P> for OneThread {
    fn prepare<M: Mailbox<P>>(&self) -> Run {
        let Self { burst, rounds } = *self;
        Box::new(move || {
            let (sender, mut mailbox) = M::channel();
            cycle(&sender, &mut mailbox, burst, 1);
            let start = Instant::now();
            let weight = cycle(&sender, &mut mailbox, burst, rounds);
            let time = start.elapsed();
            assert_eq!(weight, rounds * weight_to::<P>(burst));
            vec![nanoseconds(time, burst * rounds)]
        })
    }
}

/// Sends the numbers from 1 to `burst`, and receives as many, `rounds` times. Returns the weight of
/// the received messages.
#[inline(never)]
fn cycle<P: Payload, M: Mailbox<P>>(
    sender: &M::Sender,
    mailbox: &mut M,
    burst: u64,
    rounds: u64,
) -> u64 {
    let mut weight = 0;
    for _ in 0..rounds {
        for number in 1..=burst {
            M::send(sender, P::of(number));
        }
        for _ in 0..burst {
            weight += mailbox.try_recv().map_or(0, P::weight);
        }
    }
    weight
}

/// How many items wait in each queue.
pub(super) const ITEMS: u64 = 64;

/// Enough to make reading the clock cheap, and few enough for the cache of a core.
const FULL: usize = 8;

/// The time of an item, received singly.
#[derive(Clone, Copy)]
pub(super) struct Drain {
    /// How many times the queues are filled and emptied.
    pub(super) rounds: u64,
}

impl<P: Payload> Workload<P> for Drain {
    fn prepare<M: Mailbox<P>>(&self) -> Run {
        self.with(|mailboxes: &mut [M]| {
            let one_by_one = |mailbox: &mut M| -> u64 {
                let items = (0..ITEMS).map(|_| mailbox.try_recv());
                items.map(|item| item.map_or(0, P::weight)).sum()
            };
            mailboxes.iter_mut().map(one_by_one).sum()
        })
    }
}

impl Drain {
    /// Prepares the run that takes all items at once: the drain, and taking the items out of the
    /// batch.
    pub(super) fn at_once<P: Payload, M: Drains<P>>(&self) -> Run {
        self.with(|mailboxes: &mut [M]| {
            let drained = mailboxes.iter_mut().map(|mailbox| {
                let batch = mailbox.drain().into_iter();
                batch.map(P::weight).sum::<u64>()
            });
            drained.sum()
        })
    }

    /// Empties the queues by `empty`, which returns the weight of all items.
    fn with<P: Payload, M: Mailbox<P>>(self, empty: impl Fn(&mut [M]) -> u64 + 'static) -> Run {
        Box::new(move || {
            let (senders, mut mailboxes): (Vec<_>, Vec<M>) =
                (0..FULL).map(|_| M::channel()).unzip();
            let mut total = Duration::ZERO;
            // The first round warms the queues up.
            for round in 0..=self.rounds {
                for sender in &senders {
                    for number in 1..=ITEMS {
                        M::send(sender, P::of(number));
                    }
                }
                let start = Instant::now();
                let weight = empty(&mut mailboxes);
                let time = start.elapsed();
                assert_eq!(weight, FULL as u64 * weight_to::<P>(ITEMS));
                if round > 0 {
                    total += time;
                }
            }
            vec![nanoseconds(total, self.rounds * FULL as u64 * ITEMS)]
        })
    }
}

/// The number of queues with a single message: enough for shared memory to count in proportion.
const QUEUES: usize = 10_000;

/// Bytes and allocations, of a single thread that sends bursts to itself. Includes the queue's own
/// value if it must be on the heap.
#[derive(Clone, Copy)]
pub(super) struct Heap {
    /// How many messages are sent before the first is received.
    pub(super) burst: u64,
    /// The number of bursts, after as many that do not count.
    pub(super) rounds: u64,
}

impl<P: Payload> Workload<P> for Heap {
    fn metrics(&self) -> &'static [&'static str] {
        &[
            "bytes with one message",
            "allocations of a queue and one message",
            "allocations in a million messages",
        ]
    }

    fn prepare<M: Mailbox<P>>(&self) -> Run {
        let Self { burst, rounds } = *self;
        Box::new(move || {
            M::forget();
            let mut queues = Vec::with_capacity(QUEUES);
            let ((), first) = counted(|| {
                for _ in 0..QUEUES {
                    let (sender, mailbox) = M::channel();
                    M::send(&sender, P::of(1));
                    queues.push((sender, mailbox));
                }
            });
            for (_sender, mailbox) in &mut queues {
                assert_eq!(mailbox.try_recv().map(P::weight), Some(P::WORDS));
            }
            drop(queues);
            let (sender, mut mailbox) = M::channel();
            cycle(&sender, &mut mailbox, burst, rounds);
            let (_, steady) = counted(|| cycle(&sender, &mut mailbox, burst, rounds));
            let messages = (burst * rounds) as f64;
            vec![
                first.bytes as f64 / QUEUES as f64,
                first.allocations as f64 / QUEUES as f64,
                steady.allocations as f64 * 1e6 / messages,
            ]
        })
    }
}

impl Heap {
    /// Prepares the run for a `Queue` that is part of another value: nothing but the message is on
    /// the heap.
    ///
    /// # Panics
    /// When it runs and messages are lost.
    pub(super) fn of_queue<P: Payload>(self) -> Run {
        let Self { burst, rounds } = self;
        Box::new(move || {
            node_cache::clear();
            let queues: Vec<_> = (0..QUEUES).map(|_| Queue::new()).collect();
            let push = |queue: &Queue<P>| assert!(queue.push(P::of(1)).is_ok());
            let ((), first) = counted(|| queues.iter().for_each(push));
            drop(queues);
            let queue = Queue::new();
            let bursts = || {
                for _ in 0..rounds {
                    for number in 1..=burst {
                        assert!(queue.push(P::of(number)).is_ok());
                    }
                    assert_eq!(queue.drain().into_iter().count() as u64, burst);
                }
            };
            bursts();
            let ((), steady) = counted(bursts);
            vec![
                first.bytes as f64 / QUEUES as f64,
                first.allocations as f64 / QUEUES as f64,
                steady.allocations as f64 * 1e6 / (burst * rounds) as f64,
            ]
        })
    }
}
