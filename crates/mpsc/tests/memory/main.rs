//! The memory that queues and channels hold and ask for, measured with a counting allocator.
#![cfg(not(ganger_loom))]
#![allow(missing_docs)]

#[path = "../../../nodes/src/counting.rs"]
mod counting;

use counting::{Tally, count, slabs};
use ganger_mpsc::node_cache::{self, DEFAULT_LIMIT, SLAB_BYTES};
use ganger_mpsc::{Queue, Receiver, bounded, channel};
use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::{Barrier, Mutex, PoisonError, mpsc};
use std::thread;

/// How many slabs of a size a thread keeps at most, whole or in part: the slab of its open set, the
/// slab of the next groups, eight with given nodes, and a spare.
const KEPT: usize = 11;

/// How many slabs are kept for all threads together at most.
const SHARED: usize = DEFAULT_LIMIT / SLAB_BYTES;

/// A large item: its node takes 256 bytes, so a slab has room for few.
type Large = [usize; 31];

/// Bytes in a slab, without the allocator's own.
const SLAB: usize = SLAB_BYTES - 16;

/// Returns how many messages of a type a slab has room for. The count takes a message's place.
const fn per_slab<T>() -> usize {
    let node = (size_of::<T>() + size_of::<usize>()).next_multiple_of(16);
    SLAB / node - 1
}

/// Runs a test in a new thread, with an empty cache, and no other test at the same time: the cache
/// belongs to the process. Checks that no slab is left when the thread has ended and the cache is
/// cleared.
fn alone(test: impl FnOnce() + Send + 'static) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(slabs(), 0);
    // Unlike the end of a scope, a join waits for the thread's destructors.
    let result = thread::spawn(test).join();
    node_cache::set_limit(DEFAULT_LIMIT);
    node_cache::clear();
    if let Err(panic) = result {
        resume_unwind(panic);
    }
    assert_eq!(slabs(), 0, "leaked");
}

fn push<T>(queue: &Queue<T>, item: T) {
    let _nobody_sleeps = queue.push(item).unwrap();
}

/// Sends `items` items, and then receives them.
fn burst<T: Copy>(item: T, items: usize) {
    let (sender, receiver) = channel();
    (0..items).for_each(|_| sender.send(item).unwrap());
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

/// Checks that each message takes `bytes` bytes of a slab, and a slab has nothing else but its
/// count.
fn takes<T: Copy>(item: T, bytes: usize) {
    const SLABS: usize = 3;
    let messages = SLABS * (SLAB / bytes - 1);
    node_cache::clear();
    let queue = Queue::new();
    let ((), tally) = count(|| (0..messages).for_each(|_| push(&queue, item)));
    assert_eq!((tally.allocated, tally.freed), (SLABS, 0));
    assert_eq!(tally.bytes, (SLABS * SLAB).cast_signed());
    let ((), tally) = count(|| push(&queue, item));
    assert_eq!((tally.allocated, tally.freed), (1, 0));
    let batch = queue.drain();
    let mut places: Vec<*const T> = batch.iter().map(std::ptr::from_ref).collect();
    places.sort_unstable();
    assert!(places.iter().all(|item| item.is_aligned()));
    assert_eq!(places.len(), messages + 1);
    for pair in places.windows(2) {
        assert!(pair[1].addr() - pair[0].addr() >= bytes, "two in one place");
    }
}

#[test]
fn a_message_is_a_piece_of_a_slab() {
    alone(|| {
        takes((), 16);
        takes(7_u8, 16);
        takes(7_u64, 16);
        takes([7_u64; 2], 32);
        takes(7_u128, 32);
        takes([7_u64; 5], 48);
        takes([7_u64; 6], 64);
        takes([7_u64; 31], 256);
    });
}

/// An item with a larger alignment than the cache's blocks.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Wide(#[allow(dead_code, reason = "it takes room")] u8);

/// Checks that each message has its own allocation of `bytes` bytes, outside of the cache.
fn is_never_kept<T: Copy>(item: T, bytes: usize) {
    const ITEMS: usize = 200;
    let queue = Queue::new();
    let ((), tally) = count(|| (0..ITEMS).for_each(|_| push(&queue, item)));
    assert_eq!((tally.allocated, tally.freed), (ITEMS, 0));
    assert_eq!(tally.bytes, (ITEMS * bytes).cast_signed());
    let batch = queue.drain();
    assert!(
        batch
            .iter()
            .all(|item| std::ptr::from_ref(item).is_aligned())
    );
    let (received, tally) = count(|| batch.into_iter().count());
    assert_eq!((received, tally.allocated, tally.freed), (ITEMS, 0, ITEMS));
    let (sender, receiver) = channel();
    let ((), tally) = count(|| {
        (0..ITEMS).for_each(|_| sender.send(item).unwrap());
        assert_eq!(receiver.try_iter().count(), ITEMS);
    });
    assert_eq!((tally.allocated, tally.freed), (ITEMS, ITEMS));
    assert_eq!(slabs(), 0);
}

#[test]
fn large_and_wide_nodes_are_not_kept() {
    alone(|| {
        // The sizes are not rounded up.
        is_never_kept([7_u64; 32], 256 + size_of::<usize>());
        is_never_kept([7_u8; 100_000], 100_000 + size_of::<usize>());
        is_never_kept(Wide(7), 128);
    });
}

/// Returns how many rounds of `items` messages would take a hundred slabs without reuse.
const fn rounds<T>(items: usize) -> usize {
    (100 * per_slab::<T>()).div_ceil(items)
}

/// Returns how many slabs are enough for `items` messages at a time: their own slabs, and the slabs
/// that threads keep in addition. When all of these exist, no thread asks for more.
const fn enough<T>(items: usize) -> usize {
    items.div_ceil(per_slab::<T>()) + KEPT
}

#[test]
fn a_thread_that_sends_to_itself_uses_the_same_slabs() {
    fn check<T: Copy>(item: T) {
        for items in [1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1_000, 3_000] {
            node_cache::clear();
            let (sender, receiver) = channel();
            let queue = Queue::new();
            let round = || {
                (0..items).for_each(|_| sender.send(item).unwrap());
                assert_eq!(receiver.try_iter().count(), items);
                sender.send_all((0..items).map(|_| item)).unwrap();
                assert!(receiver.try_recv().is_ok());
                assert_eq!(receiver.drain().len(), items - 1);
                (0..items).for_each(|_| push(&queue, item));
                assert_eq!(queue.drain().into_iter().count(), items);
            };
            let ((), tally) = count(|| (0..rounds::<T>(items)).for_each(|_| round()));
            assert!(tally.allocated <= enough::<T>(items), "{items}: {tally:?}");
            assert_eq!(tally.freed, 0, "{items} at a time");
        }
    }
    alone(|| check(0_usize));
    alone(|| check([0_usize; 4]));
    alone(|| check([0_usize; 15]));
    alone(|| check(Large::default()));
}

/// Has a producer and a consumer take turns, with `items` items each time. The slabs travel back
/// through the exchange.
fn take_turns<T: Copy + Send>(item: T, items: usize, receive: fn(&Receiver<T>) -> usize) {
    let (sender, receiver) = channel();
    let turn = Barrier::new(2);
    thread::scope(|scope| {
        let (turn, sender) = (&turn, &sender);
        let producer = scope.spawn(move || {
            let round = || {
                (0..items).for_each(|_| sender.send(item).unwrap());
                turn.wait();
                turn.wait();
            };
            count(|| (0..rounds::<T>(items)).for_each(|_| round())).1
        });
        let mut received = 0;
        let mut round = || {
            turn.wait();
            received += receive(&receiver);
            turn.wait();
        };
        let ((), consumer) = count(|| (0..rounds::<T>(items)).for_each(|_| round()));
        assert_eq!(received, items * rounds::<T>(items));
        assert_eq!(consumer, Tally::NOTHING, "{items} at a time");
        let producer = producer.join().unwrap();
        assert!(
            producer.allocated <= enough::<T>(items),
            "{items}: {producer:?}"
        );
        assert_eq!(producer.freed, 0, "{items} at a time");
    });
}

#[test]
fn a_producer_and_a_consumer_that_take_turns_use_the_same_slabs() {
    fn check<T: Copy + Send + 'static>(item: T, items: usize) {
        alone(move || take_turns(item, items, |receiver| receiver.try_iter().count()));
        alone(move || take_turns(item, items, |receiver| receiver.drain().into_iter().count()));
    }
    for items in [1, 10, 64, 1_000] {
        check(Large::default(), items);
    }
    for items in [100, 1_000, 5_000] {
        check(0_usize, items);
    }
}

/// Runs without turns: a slab on its way to the exchange may be missing. Then the producer
/// allocates a further slab, and finds the missing slab later.
#[test]
fn a_producer_and_a_consumer_ask_for_little() {
    const ITEMS: usize = 500_000;
    alone(|| {
        let (sender, receiver) = bounded(500);
        let ((), consumer) = thread::scope(|scope| {
            let producer = scope.spawn(move || {
                let ((), producer) =
                    count(|| (0..ITEMS).for_each(|item| sender.send(item).unwrap()));
                assert!(producer.allocated <= KEPT + 5, "{producer:?}");
            });
            let result = count(|| assert!(receiver.iter().eq(0..ITEMS)));
            producer.join().unwrap();
            result
        });
        assert!(consumer.allocated <= KEPT, "{consumer:?}");
    });
}

#[test]
fn what_a_burst_leaves_is_bounded_and_can_be_returned() {
    const ITEMS: usize = 1_000_000;
    alone(|| {
        for drain in [false, true] {
            let (ends, _) = count(channel);
            let ((), tally) = count(|| {
                let (sender, receiver) = &ends;
                (0..ITEMS).for_each(|item| sender.send(item).unwrap());
                assert_eq!(slabs(), ITEMS.div_ceil(per_slab::<usize>()));
                if drain {
                    assert!(receiver.drain().into_iter().eq(0..ITEMS));
                } else {
                    assert!(receiver.try_iter().eq(0..ITEMS));
                }
                let kept = slabs();
                assert!((SHARED..=SHARED + KEPT).contains(&kept), "{kept} slabs");
                node_cache::clear();
                assert_eq!(slabs(), 0);
            });
            assert_eq!(tally.bytes, 0);
        }
    });
}

/// Checks that the memory of a burst goes back while the burst is received, not at its end.
#[test]
fn a_burst_goes_back_as_it_is_received() {
    const ITEMS: usize = 100_000;
    alone(|| {
        let (sender, receiver) = channel();
        (0..ITEMS).for_each(|item| sender.send([item; 3]).unwrap());
        assert_eq!(receiver.try_iter().take(ITEMS - 1).count(), ITEMS - 1);
        node_cache::clear();
        assert_eq!(slabs(), 1, "the last item's");
        assert_eq!(receiver.try_recv(), Ok([ITEMS - 1; 3]));

        (0..ITEMS).for_each(|item| sender.send([item; 3]).unwrap());
        let mut items = receiver.drain().into_iter();
        assert_eq!(items.by_ref().take(ITEMS - 1).count(), ITEMS - 1);
        node_cache::clear();
        // The iterator keeps neighbours of the last item, which may be in the previous slab.
        assert!(slabs() <= 2, "{} slabs", slabs());
        assert_eq!(items.next(), Some([ITEMS - 1; 3]));
    });
}

#[test]
fn a_limit_holds() {
    alone(|| {
        for (limit, kept) in [
            (0, 0),
            (1, 1),
            (SLAB_BYTES, 1),
            (SLAB_BYTES + 1, 2),
            (100_000, 25),
            (usize::MAX, SHARED),
        ] {
            node_cache::clear();
            assert_eq!(slabs(), 0);
            node_cache::set_limit(limit);
            assert_eq!(node_cache::limit(), kept * SLAB_BYTES);
            burst(Large::default(), (SHARED + 50) * per_slab::<Large>());
            let slabs = slabs();
            assert!(
                (kept..=kept + KEPT).contains(&slabs),
                "{slabs} slabs, of {limit}"
            );
        }
    });
}

#[test]
fn what_is_kept_above_a_lower_limit_is_used_up() {
    alone(|| {
        burst(Large::default(), 50 * per_slab::<Large>());
        let kept = slabs();
        assert_eq!(kept, 50);
        node_cache::set_limit(0);
        let queue = Queue::new();
        let asks = || count(|| push(&queue, Large::default())).1 != Tally::NOTHING;
        let items = (0..).take_while(|_| !asks()).count();
        // The thread has only parts of some slabs.
        let least = (kept - KEPT) * per_slab::<Large>();
        assert!(items >= least, "{items} messages from {kept} slabs");
        drop(queue);
        assert!(slabs() <= KEPT, "{} slabs", slabs());
    });
}

/// Checks that the slabs of a size serve another size.
#[test]
fn what_is_kept_is_for_nodes_of_any_size() {
    alone(|| {
        burst(Large::default(), 50 * per_slab::<Large>());
        let queue = Queue::new();
        let items = (50 - KEPT) * per_slab::<usize>();
        let ((), tally) = count(|| (0..items).for_each(|item| push(&queue, item)));
        assert_eq!(tally, Tally::NOTHING);
        assert!(queue.drain().into_iter().eq(0..items));
    });
}

#[test]
fn items_without_size_take_nodes_and_nothing_else() {
    const ITEMS: usize = 100_000;
    alone(|| {
        let (sender, receiver) = channel();
        let ((), tally) = count(|| {
            (0..ITEMS).for_each(|_| sender.send(()).unwrap());
            assert_eq!(receiver.try_iter().count(), ITEMS);
        });
        assert_eq!(tally.allocated, ITEMS.div_ceil(per_slab::<()>()));
        assert_eq!(tally.freed, 0, "they are not more than are kept");
    });
}

#[test]
fn a_thread_that_ends_returns_what_it_kept() {
    alone(|| {
        // The thread keeps parts of slabs, of several sizes, and spares.
        let work = || {
            burst(0_usize, 3 * per_slab::<usize>() / 2);
            let queue = Queue::new();
            (0..100).for_each(|_| push(&queue, Large::default()));
        };
        // The slabs go to threads in need of them.
        thread::spawn(work).join().unwrap();
        let returned = slabs();
        assert_eq!(returned, 2 + 100_usize.div_ceil(per_slab::<Large>()));
        let queue = Queue::new();
        let items = returned * per_slab::<usize>();
        let ((), tally) = count(|| (0..items).for_each(|item| push(&queue, item)));
        assert_eq!(tally, Tally::NOTHING);
        drop(queue);
        // Beyond the limit they go to the allocator.
        node_cache::clear();
        node_cache::set_limit(0);
        thread::spawn(work).join().unwrap();
        assert_eq!(slabs(), 0);
    });
}

#[test]
fn clearing_leaves_other_threads_what_they_keep() {
    alone(|| {
        let turn = Barrier::new(2);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                burst(0_usize, 100);
                turn.wait();
                turn.wait();
                let ((), tally) = count(|| push(&Queue::new(), 7_usize));
                assert_eq!(tally, Tally::NOTHING);
            });
            turn.wait();
            burst(0_usize, 3_000);
            node_cache::clear();
            let kept = slabs();
            turn.wait();
            other.join().unwrap();
            assert_eq!(kept, 1);
        });
        node_cache::clear();
        assert_eq!(slabs(), 0);
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

/// Sends and receives in the destructor of a thread-local value. Sends how many slabs the messages
/// took.
struct Late(mpsc::Sender<usize>);

impl Drop for Late {
    fn drop(&mut self) {
        const ITEMS: usize = 300;
        let before = slabs();
        let (sender, receiver) = channel();
        (0..ITEMS).for_each(|item| sender.send(item).unwrap());
        let queue = Queue::new();
        (0..ITEMS).for_each(|item| push(&queue, item));
        self.0.send(slabs() - before).unwrap();
        assert!(receiver.try_iter().eq(0..ITEMS));
        assert!(queue.drain().into_iter().eq(0..ITEMS));
        let _queued = queue.push_all(0..ITEMS).unwrap();
        drop(queue);
    }
}

thread_local! {
    static EARLIER: Cell<Option<Late>> = const { Cell::new(None) };
    static LATER: Cell<Option<Late>> = const { Cell::new(None) };
}

/// Sends and receives in two destructors: whatever order a platform has, one of the two runs after
/// the thread has given up its blocks. Then each message takes a slab, and gives it back.
#[test]
fn a_thread_s_destructors_may_send_and_receive() {
    alone(|| {
        let (sender, outcomes) = mpsc::channel();
        let thread = thread::spawn(move || {
            EARLIER.set(Some(Late(sender.clone())));
            burst(0, 10);
            LATER.set(Some(Late(sender)));
        });
        thread.join().unwrap();
        let outcomes: Vec<_> = outcomes.iter().collect();
        assert_eq!(outcomes.len(), 2, "no destructor ran");
        assert!(outcomes.iter().any(|slabs| *slabs >= 500), "{outcomes:?}");
        assert!(slabs() <= SHARED, "{} slabs", slabs());
    });
}
