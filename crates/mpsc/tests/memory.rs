//! How much memory queues and channels hold and ask for, by an allocator that counts.
#![cfg(not(loom))]
#![allow(missing_docs)]

#[path = "support/counting.rs"]
mod counting;

use counting::{Tally, all_blocks, blocks, count};
use ganger_mpsc::node_cache::{self, DEFAULT_LIMIT, NODES_PER_THREAD};
use ganger_mpsc::{Queue, Receiver, bounded, channel};
use std::panic::resume_unwind;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

/// Nodes in a magazine: what threads hand over to each other at a time.
const MAGAZINE: usize = 64;

/// The node of a small item.
const SMALL: usize = 16;

/// Runs a test alone, in a thread of its own, with an empty cache, because the cache belongs to the
/// process; and sees to it that nothing is left when the thread has ended and the cache is cleared.
fn alone(test: impl FnOnce() + Send + 'static) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(all_blocks(), 0);
    // Unlike the end of a scope, a join waits for the thread's destructors.
    let result = thread::spawn(test).join();
    node_cache::set_limit(DEFAULT_LIMIT);
    node_cache::clear();
    if let Err(panic) = result {
        resume_unwind(panic);
    }
    assert_eq!(all_blocks(), 0, "leaked");
}

fn push<T>(queue: &Queue<T>, item: T) {
    let _nobody_sleeps = queue.push(item).unwrap();
}

/// Sends so many items, and then receives them.
fn burst(items: usize) {
    let (sender, receiver) = channel();
    (0..items).for_each(|item| sender.send(item).unwrap());
    assert_eq!(receiver.try_iter().count(), items);
}

#[test]
fn an_empty_queue_is_a_word_and_nothing_else() {
    alone(|| {
        assert!(size_of::<Queue<u8>>() <= 16);
        assert!(size_of::<Queue<[u64; 100]>>() <= 16);
        let (_, tally) = count(|| {
            let queue = Queue::<[u64; 100]>::new();
            assert!(queue.drain().is_empty() && queue.is_empty());
            let _parked = queue.park();
            assert!(queue.cancel_park());
            let _nobody_parked = queue.seal();
            assert!(queue.close().batch.is_empty());
        });
        assert_eq!(tally, Tally::NOTHING);
        let (_ends, tally) = count(channel::<[u64; 100]>);
        assert_eq!(tally.allocated, 1, "what the two sides share");
    });
}

/// Aligned to more than nodes that are kept.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Wide(#[allow(dead_code, reason = "it takes room")] u8);

/// What one message takes, from the allocator and without the help of the cache.
fn bytes_of_one<T>(item: T) -> isize {
    node_cache::clear();
    let queue = Queue::new();
    let (_, tally) = count(|| push(&queue, item));
    assert_eq!((tally.allocated, tally.freed), (1, 0));
    let batch = queue.drain();
    assert_eq!(batch.len(), 1);
    let front: *const T = batch.front().unwrap();
    assert!(front.is_aligned());
    tally.bytes
}

#[test]
fn a_message_is_one_node() {
    alone(|| {
        assert_eq!(bytes_of_one(()), 16);
        assert_eq!(bytes_of_one(7_u8), 16);
        assert_eq!(bytes_of_one(7_u64), 16);
        assert_eq!(bytes_of_one([7_u64; 2]), 32);
        assert_eq!(bytes_of_one([7_u64; 6]), 64);
        assert_eq!(bytes_of_one(7_u128), 32);
        assert_eq!(bytes_of_one([7_u64; 31]), 256);
        // These are not kept, so they are not rounded up.
        assert_eq!(bytes_of_one([7_u64; 32]), 264);
        assert_eq!(bytes_of_one(Wide(7)), 128);
    });
}

#[test]
fn a_thread_that_sends_to_itself_asks_for_nothing() {
    alone(|| {
        for items in [1, 63, 64, 65, 127, 128, 129, 1_000] {
            let (sender, receiver) = channel();
            let queue = Queue::new();
            let round = || {
                (0..items).for_each(|item| sender.send(item).unwrap());
                assert!(receiver.try_iter().eq(0..items));
                (0..items).for_each(|item| push(&queue, item));
                assert!(queue.drain().into_iter().eq(0..items));
            };
            round();
            let (_, tally) = count(|| (0..50).for_each(|_| round()));
            assert_eq!(tally, Tally::NOTHING, "{items} at a time");
        }
    });
}

/// A producer and a consumer take turns, with so many items each time. The nodes travel back
/// through the exchange.
fn take_turns(items: usize, receive: fn(&Receiver<usize>) -> usize) {
    // Even one by one, until the consumer has its two magazines.
    const WARM_UP: usize = 3 * MAGAZINE;
    const ROUNDS: usize = 1_000;
    let (sender, receiver) = channel();
    let turn = Barrier::new(2);
    thread::scope(|scope| {
        let (turn, sender) = (&turn, &sender);
        let producer = scope.spawn(move || {
            let round = || {
                (0..items).for_each(|item| sender.send(item).unwrap());
                turn.wait();
                turn.wait();
            };
            let (_, first) = count(|| (0..WARM_UP).for_each(|_| round()));
            let (_, then) = count(|| (0..ROUNDS).for_each(|_| round()));
            (first, then)
        });
        let mut received = 0;
        let mut round = || {
            turn.wait();
            received += receive(&receiver);
            turn.wait();
        };
        (0..WARM_UP).for_each(|_| round());
        let (_, consumer) = count(|| (0..ROUNDS).for_each(|_| round()));
        let (first, producer) = producer.join().unwrap();
        assert_eq!(received, items * (WARM_UP + ROUNDS));
        assert_eq!(producer, Tally::NOTHING, "{items} at a time");
        assert_eq!(consumer, Tally::NOTHING, "{items} at a time");
        // What is on its way, and what the two threads may keep: the producer one magazine, since
        // it is given nothing, and the consumer two.
        assert!(first.allocated <= items + 3 * MAGAZINE, "{first:?}");
    });
}

#[test]
fn a_producer_and_a_consumer_that_take_turns_ask_for_nothing() {
    for items in [1, 64, 100, 1_000] {
        alone(move || take_turns(items, |receiver| receiver.try_iter().count()));
        alone(move || take_turns(items, |receiver| receiver.drain().into_iter().count()));
    }
}

/// Without turns a take may miss what is put behind its back. Each such miss leaves more nodes in the
/// exchange than are needed, so that there are few of them.
#[test]
fn a_producer_and_a_consumer_ask_for_little() {
    const ITEMS: usize = 500_000;
    alone(|| {
        let (sender, receiver) = bounded(500);
        let (_, consumer) = thread::scope(|scope| {
            let producer = scope.spawn(move || {
                let (_, producer) =
                    count(|| (0..ITEMS).for_each(|item| sender.send(item).unwrap()));
                assert!(producer.allocated <= ITEMS / 100, "{producer:?}");
            });
            let result = count(|| assert!(receiver.iter().eq(0..ITEMS)));
            producer.join().unwrap();
            result
        });
        assert!(consumer.allocated <= ITEMS / 100, "{consumer:?}");
    });
}

#[test]
fn what_a_burst_leaves_is_bounded_and_can_be_returned() {
    const ITEMS: usize = 1_000_000;
    const KEPT: usize = DEFAULT_LIMIT + NODES_PER_THREAD;
    alone(|| {
        for drain in [false, true] {
            let (ends, _) = count(channel);
            let (_, tally) = count(|| {
                let (sender, receiver) = &ends;
                (0..ITEMS).for_each(|item| sender.send(item).unwrap());
                assert_eq!(blocks(SMALL), ITEMS);
                if drain {
                    assert!(receiver.drain().into_iter().eq(0..ITEMS));
                } else {
                    assert!(receiver.try_iter().eq(0..ITEMS));
                }
                let kept = blocks(SMALL);
                assert!((DEFAULT_LIMIT..=KEPT).contains(&kept), "{kept} nodes");
                node_cache::clear();
                assert_eq!(blocks(SMALL), 0);
            });
            // No node, and of the receiver's own memory no more than it keeps.
            assert!(tally.bytes <= 16 * 1_024, "{} bytes", tally.bytes);
        }
    });
}

#[test]
fn a_limit_holds() {
    alone(|| {
        for (limit, kept) in [
            (0, 0),
            (1, 64),
            (100, 128),
            (128, 128),
            (usize::MAX, DEFAULT_LIMIT),
        ] {
            node_cache::clear();
            node_cache::set_limit(limit);
            assert_eq!(node_cache::limit(), kept);
            burst(3_000);
            let most = kept + NODES_PER_THREAD;
            let blocks = blocks(SMALL);
            assert!(
                (kept..=most).contains(&blocks),
                "{blocks} nodes, of {limit}"
            );
        }
    });
}

#[test]
fn what_is_kept_above_a_lower_limit_is_used_up() {
    alone(|| {
        burst(3_000);
        let kept = blocks(SMALL);
        node_cache::set_limit(0);
        let queue = Queue::new();
        let (_, tally) = count(|| (0..kept).for_each(|item| push(&queue, item)));
        assert_eq!(tally, Tally::NOTHING);
        drop(queue);
        assert!(blocks(SMALL) <= NODES_PER_THREAD);
    });
}

/// Neither taken from the cache nor given to it.
fn is_never_kept<T: Copy>(item: T) {
    let queue = Queue::new();
    let (_, tally) = count(|| {
        for _ in 0..3 * MAGAZINE {
            push(&queue, item);
        }
        queue.drain().into_iter().count()
    });
    assert_eq!((tally.allocated, tally.freed), (3 * MAGAZINE, 3 * MAGAZINE));
    let (sender, receiver) = channel();
    let (_, tally) = count(|| {
        for _ in 0..3 * MAGAZINE {
            sender.send(item).unwrap();
        }
        assert_eq!(receiver.try_iter().count(), 3 * MAGAZINE);
        drop(receiver);
    });
    assert_eq!(tally.bytes, 0);
    assert_eq!(all_blocks(), 0);
}

#[test]
fn large_and_wide_nodes_are_not_kept() {
    alone(|| {
        is_never_kept([7_u64; 32]);
        is_never_kept([7_u8; 100_000]);
        is_never_kept(Wide(7));
    });
}

#[test]
fn items_without_size_take_nodes_and_nothing_else() {
    const ITEMS: usize = 100_000;
    alone(|| {
        let (sender, receiver) = channel();
        let (_, tally) = count(|| {
            (0..ITEMS).for_each(|_| sender.send(()).unwrap());
            assert_eq!(receiver.try_iter().count(), ITEMS);
        });
        assert_eq!(tally.allocated, ITEMS);
        assert!(blocks(SMALL) <= DEFAULT_LIMIT + NODES_PER_THREAD);
    });
}

#[test]
fn a_thread_that_ends_returns_what_it_kept() {
    alone(|| {
        // Full and half full magazines, of several sizes.
        let work = || {
            burst(MAGAZINE + MAGAZINE / 2);
            let queue = Queue::new();
            (0..100).for_each(|_| push(&queue, [7_u64; 31]));
        };
        // To those who need it.
        thread::spawn(work).join().unwrap();
        assert_eq!((blocks(SMALL), blocks(256)), (MAGAZINE, MAGAZINE));
        let (_, tally) = count(|| push(&Queue::new(), 7_u64));
        assert_eq!(tally, Tally::NOTHING);
        // And where they have enough, to the allocator.
        node_cache::clear();
        node_cache::set_limit(0);
        thread::spawn(work).join().unwrap();
        assert_eq!(all_blocks(), 0);
    });
}

#[test]
fn clearing_leaves_other_threads_what_they_keep() {
    alone(|| {
        let turn = Barrier::new(2);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                burst(100);
                turn.wait();
                turn.wait();
                let (_, tally) = count(|| push(&Queue::new(), 7_u64));
                assert_eq!(tally, Tally::NOTHING);
            });
            turn.wait();
            burst(3_000);
            node_cache::clear();
            let kept = blocks(SMALL);
            turn.wait();
            other.join().unwrap();
            assert_eq!(kept, 100);
        });
        node_cache::clear();
        assert_eq!(blocks(SMALL), 0);
    });
}

/// What comes and goes in bundles asks for nothing, however large they are and whatever takes them.
#[test]
fn bundles_ask_for_nothing() {
    fn check<T: Copy + Send + 'static>(item: T, items: usize) {
        let (sender, receiver) = channel();
        let round = || {
            (0..items).for_each(|_| sender.send(item).unwrap());
            assert_eq!(receiver.try_iter().count(), items);
            (0..items).for_each(|_| sender.send(item).unwrap());
            assert!(receiver.try_recv().is_ok());
            assert_eq!(receiver.drain().len(), items - 1);
        };
        (0..20).for_each(|_| round());
        let ((), tally) = count(|| (0..50).for_each(|_| round()));
        assert_eq!(tally, Tally::NOTHING, "{items} of {} bytes", size_of::<T>());
    }
    alone(|| {
        check(0_u64, 3);
        check([0_u64; 31], 66);
        check([0_u64; 15], 120);
        check([0_u64; 3], 400);
    });
}

/// A burst's memory goes back while it is received, not at its end.
#[test]
fn a_burst_goes_back_as_it_is_received() {
    const ITEMS: usize = 100_000;
    alone(|| {
        let (sender, receiver) = channel();
        let ((), tally) = count(|| {
            (0..ITEMS).for_each(|item| sender.send([item; 3]).unwrap());
            assert_eq!(receiver.try_iter().take(ITEMS - 1).count(), ITEMS - 1);
            node_cache::clear();
        });
        assert!(tally.bytes <= 32 * 1_024, "{} bytes", tally.bytes);
        assert_eq!(receiver.try_recv(), Ok([ITEMS - 1; 3]));
    });
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    alone(|| {
        let queue = Queue::new();
        let _nothing = queue.close();
        for item in 0..10 {
            assert_eq!(queue.push(item).unwrap_err().into_inner(), item);
        }
        let refused = queue.push_all(0..10).unwrap_err().into_inner();
        assert!(refused.into_iter().eq(0..10));
    });
}
