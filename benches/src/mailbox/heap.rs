//! The memory of queues with a single message each, and the number of allocations of a queue in
//! use.

use super::contest::Workload;
use super::counting::counted;
use super::one_thread::cycle;
use super::payload::Payload;
use super::traits::Mailbox;
use crate::contest::Run;
use ganger_mpsc::{Queue, node_cache};

/// The number of queues with a single message: enough for shared memory to count in proportion.
const QUEUES: usize = 10_000;

/// Bytes and allocations, of a single thread that sends bursts to itself. Includes the queue's own
/// value if it must be on the heap.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// How many messages are sent before the first is received.
    pub burst: u64,
    /// The number of bursts, after as many that do not count.
    pub rounds: u64,
}

impl<P: Payload> Workload<P> for Heap {
    fn name(&self) -> String {
        "heap".to_owned()
    }

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
    /// The same for a `Queue` that is part of another value: nothing but the message is on the
    /// heap.
    ///
    /// # Panics
    /// When it runs and messages are lost.
    #[must_use]
    pub fn of_queue<P: Payload>(self) -> Run {
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
