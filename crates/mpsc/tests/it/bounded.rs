//! Bounded channels: their room, the order of waiting senders, and returned items.
//! `GANGER_STRESS=10` makes the long tests ten times as long.
#![cfg(not(ganger_loom))]

use crate::support::{Item, LOST, Order, add_panic_hook, join, scaled};
use ganger_mpsc::{
    BoundedSender, Receiver, RecvError, RecvTimeoutError, SendError, SendTimeoutError,
    TryRecvError, TrySendError, bounded,
};
use std::cell::Cell;
use std::panic::{self, Location};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Returns a full channel with the items from 0 on.
fn full(capacity: usize) -> (BoundedSender<usize>, Receiver<usize>) {
    let (sender, receiver) = bounded(capacity);
    (0..capacity).for_each(|item| sender.try_send(item).unwrap());
    (sender, receiver)
}

/// Sends each item on its own thread.
fn send_each(
    sender: &BoundedSender<usize>,
    items: std::ops::Range<usize>,
) -> Vec<JoinHandle<Result<(), SendError<usize>>>> {
    let send = |item| {
        let sender = sender.clone();
        thread::spawn(move || sender.send(item))
    };
    items.map(send).collect()
}

/// Checks that the channel has room for `capacity` items, and no more.
fn assert_room(sender: &BoundedSender<usize>, capacity: usize) {
    for item in 0..capacity {
        assert_eq!(sender.try_send(item), Ok(()), "a place was lost");
    }
    assert_eq!(
        sender.try_send(capacity),
        Err(TrySendError::Full(capacity)),
        "there is a place too many"
    );
}

#[test]
#[should_panic(expected = "a bounded channel needs room for at least one item")]
fn there_is_no_channel_without_room() {
    let _ends = bounded::<u8>(0);
}

#[test]
fn there_may_be_room_for_all_that_memory_holds() {
    let (sender, receiver) = bounded(usize::MAX);
    for item in 0..100 {
        assert_eq!(sender.try_send(item), Ok(()));
    }
    assert!(receiver.drain().into_iter().eq(0..100));
    assert_eq!(sender.send(7), Ok(()));
    assert_eq!(receiver.recv(), Ok(7));
}

#[test]
fn what_there_is_no_room_for_comes_back() {
    for capacity in [1, 2, 100] {
        let (sender, receiver) = bounded(capacity);
        assert_room(&sender, capacity);
        assert!(format!("{sender:?}").starts_with("BoundedSender { free: 0, "));
        assert_eq!(receiver.len(), capacity);
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(sender.try_send(capacity), Ok(()));
        assert_eq!(sender.try_send(0), Err(TrySendError::Full(0)));
        drop(sender);
        assert!(receiver.into_iter().eq(1..=capacity));
    }
}

#[test]
fn every_way_of_receiving_makes_room() {
    let ways: [fn(&Receiver<usize>) -> usize; 7] = [
        |receiver| usize::from(receiver.recv().is_ok()),
        |receiver| usize::from(receiver.try_recv().is_ok()),
        |receiver| usize::from(receiver.recv_timeout(LOST).is_ok()),
        |receiver| receiver.iter().take(2).count(),
        |receiver| receiver.try_iter().count(),
        |receiver| receiver.drain().len(),
        // A part is in the receiver's backlog, the rest in the queue: both are received.
        |receiver| usize::from(receiver.recv().is_ok()) + receiver.drain().len(),
    ];
    for receive in ways {
        let (sender, receiver) = full(5);
        let received = receive(&receiver);
        assert_room(&sender, received);
        assert_eq!(receiver.drain().len(), 5);
        assert_room(&sender, 5);
    }
    let (sender, receiver) = full(5);
    let mut items = receiver.into_iter();
    assert_eq!((items.next(), items.next()), (Some(0), Some(1)));
    assert_room(&sender, 2);
}

#[test]
fn receiving_nothing_makes_no_room() {
    let (sender, receiver) = bounded(2);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    let received = receiver.recv_timeout(std::time::Duration::from_nanos(1));
    assert_eq!(received, Err(RecvTimeoutError::Timeout));
    assert_eq!(receiver.drain().len(), 0);
    assert_room(&sender, 2);
}

#[test]
fn a_drain_makes_room_for_all_that_wait() {
    for _ in 0..scaled(200) {
        let (sender, receiver) = full(4);
        let threads = send_each(&sender, 4..8);
        let mut items: Vec<_> = receiver.drain().into_iter().collect();
        for thread in threads {
            assert_eq!(join(thread), Ok(()));
        }
        items.extend(receiver.drain());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..8));
        assert_room(&sender, 4);
    }
}

/// Lets senders wait, and ends their wait: each gets its own item back.
fn end_waits(end: fn(Receiver<usize>) -> Option<Receiver<usize>>) {
    for _ in 0..scaled(200) {
        let (sender, receiver) = full(2);
        let threads = send_each(&sender, 2..6);
        let receiver = end(receiver);
        for (item, thread) in (2..6).zip(threads) {
            assert_eq!(join(thread), Err(SendError(item)));
        }
        assert!(sender.is_closed());
        // More rounds than the channel has places.
        for item in 0..5 {
            assert_eq!(sender.send(item), Err(SendError(item)));
            let refused = sender.try_send(item);
            assert_eq!(refused, Err(TrySendError::Disconnected(item)));
        }
        if let Some(receiver) = receiver {
            assert_eq!(receiver.recv(), Err(RecvError));
        }
    }
}

#[test]
fn senders_that_wait_get_their_item_back_when_the_receiver_goes() {
    end_waits(|receiver| {
        drop(receiver);
        None
    });
}

#[test]
fn senders_that_wait_get_their_item_back_when_the_channel_is_closed() {
    end_waits(|receiver| {
        assert!(receiver.close().into_iter().eq(0..2));
        assert_eq!(receiver.close().len(), 0);
        Some(receiver)
    });
}

/// Checks that a closed channel refuses an item even if it has room.
#[test]
fn a_closed_channel_has_no_use_for_room() {
    let (sender, receiver) = bounded(3);
    sender.send(0).unwrap();
    assert_eq!(receiver.close().len(), 1);
    for item in 1..10 {
        assert_eq!(sender.try_send(item), Err(TrySendError::Disconnected(item)));
        assert_eq!(sender.send(item), Err(SendError(item)));
    }
}

#[test]
fn the_end_comes_with_the_last_sender() {
    let (sender, receiver) = full(2);
    let other = sender.clone();
    drop(sender);
    assert_eq!(receiver.recv(), Ok(0));
    other.send(2).unwrap();
    drop(other);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(receiver.recv(), Ok(2));
    assert_eq!(receiver.recv(), Err(RecvError));
}

#[test]
fn a_send_that_there_is_no_room_for_in_time_comes_back() {
    let soon = Duration::from_millis(2);
    for capacity in [1, 5, 100] {
        let (sender, receiver) = full(capacity);
        for timeout in [Duration::ZERO, soon] {
            let sent = sender.send_timeout(7, timeout);
            assert_eq!(sent, Err(SendTimeoutError::Timeout(7)));
        }
        assert!(receiver.drain().into_iter().eq(0..capacity));
        assert_room(&sender, capacity);
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(sender.send_timeout(8, soon), Ok(()));
        assert_eq!(receiver.close().len(), capacity);
        let sent = sender.send_timeout(9, soon);
        assert_eq!(sent, Err(SendTimeoutError::Disconnected(9)));
    }
}

/// Sends with an infinite timeout, which is never reached.
#[test]
fn a_send_with_a_deadline_gets_the_room_that_comes_in_time() {
    for timeout in [LOST, Duration::MAX] {
        let (sender, receiver) = full(1);
        let thread = thread::spawn(move || sender.send_timeout(1, timeout));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(join(thread), Ok(()));
    }
}

#[test]
fn a_send_with_a_deadline_sees_the_end() {
    let (sender, receiver) = full(1);
    let thread = thread::spawn(move || sender.send_timeout(1, LOST));
    drop(receiver);
    assert_eq!(join(thread), Err(SendTimeoutError::Disconnected(1)));
}

/// Has more senders than lots wait at the same time. The receiver takes all items, and then waits:
/// so all senders get in.
#[test]
fn all_that_wait_get_in_when_the_receiver_waits() {
    for capacity in [1, 3, 16, 100] {
        for _ in 0..scaled(20) {
            let (sender, receiver) = full(capacity);
            let threads = send_each(&sender, capacity..capacity + 12);
            let mut items: Vec<_> = (0..capacity + 12)
                .map(|_| receiver.recv_timeout(LOST).unwrap())
                .collect();
            for thread in threads {
                assert_eq!(join(thread), Ok(()));
            }
            items.sort_unstable();
            assert!(items.into_iter().eq(0..capacity + 12));
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
            assert_room(&sender, capacity);
        }
    }
}

/// Has threads send in every way, come and go, and give up: each item is received once, or comes
/// back to its sender, and no place is lost.
#[test]
fn the_account_adds_up_whoever_gives_up() {
    const SENDERS: usize = 6;
    for capacity in [1, 5, 16, 64] {
        let count = scaled(1_000);
        let (sender, receiver) = bounded::<Item>(capacity);
        let threads: Vec<_> = (0..SENDERS)
            .map(|producer| {
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut refused = 0;
                    for number in 0..count {
                        let mut item = (producer, number);
                        loop {
                            let timeout = Duration::from_micros((number % 50) as u64);
                            let sent = match producer % 3 {
                                0 => sender.send(item).map_err(|_| item),
                                1 => sender.send_timeout(item, timeout).map_err(|error| {
                                    assert_eq!(error, SendTimeoutError::Timeout(item));
                                    error.into_inner()
                                }),
                                _ => sender.clone().try_send(item).map_err(|error| {
                                    assert_eq!(error, TrySendError::Full(item));
                                    thread::yield_now();
                                    error.into_inner()
                                }),
                            };
                            let Err(same) = sent else { break };
                            item = same;
                            refused += 1;
                        }
                    }
                    refused
                })
            })
            .collect();
        let mut order = Order::new(SENDERS);
        while !order.is_complete(count) {
            order.check(receiver.recv_timeout(LOST).unwrap());
        }
        let refused: usize = threads.into_iter().map(join).sum();
        assert_eq!(
            receiver.try_recv(),
            Err(TryRecvError::Empty),
            "{refused} came back"
        );
        for place in 0..capacity {
            assert_eq!(sender.try_send((0, place)), Ok(()), "a place was lost");
        }
        assert!(sender.try_send((0, 0)).is_err(), "a place too many");
    }
}

#[test]
fn an_error_says_why_and_has_the_item() {
    let late = SendTimeoutError::Timeout(6);
    assert_eq!(late.to_string(), "timed out waiting for room in a channel");
    assert_eq!(format!("{late:?}"), "Timeout(..)");
    assert_eq!(late.into_inner(), 6);
    let over = SendTimeoutError::from(SendError(5));
    assert_eq!(over.to_string(), "sending on a closed channel");
    assert_eq!(format!("{over:?}"), "Disconnected(..)");
    assert_eq!(over.into_inner(), 5);
    let full = TrySendError::Full(7);
    assert_eq!(full.to_string(), "sending on a full channel");
    assert_eq!(format!("{full:?}"), "Full(..)");
    assert_eq!(full.into_inner(), 7);
    let closed = TrySendError::from(SendError(8));
    assert_eq!(closed.to_string(), "sending on a closed channel");
    assert_eq!(format!("{closed:?}"), "Disconnected(..)");
    assert_eq!(closed.into_inner(), 8);
}

/// Has four senders wait most of the time: each item comes once and in order, and the channel never
/// has more items than its capacity.
#[test]
fn there_is_never_more_than_there_is_room_for() {
    const SENDERS: usize = 4;
    for capacity in [1, 2, 7, 64] {
        let count = scaled(5_000);
        let (sender, receiver) = bounded::<Item>(capacity);
        let threads: Vec<_> = (0..SENDERS)
            .map(|producer| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for number in 0..count {
                        let item = (producer, number);
                        // Some senders wait, the other senders try again and again.
                        if producer % 2 == 0 {
                            sender.send(item).unwrap();
                        } else {
                            while let Err(error) = sender.try_send(item) {
                                assert_eq!(error, TrySendError::Full(item));
                                thread::yield_now();
                            }
                        }
                    }
                })
            })
            .collect();
        while receiver.len() < capacity {
            thread::yield_now();
        }
        let mut order = Order::new(SENDERS);
        while !order.is_complete(count) {
            let len = receiver.len();
            assert!(len <= capacity, "{len} items in room for {capacity}");
            order.check(receiver.recv_timeout(LOST).unwrap());
        }
        threads.into_iter().for_each(join);
        for place in 0..capacity {
            sender.try_send((0, place)).expect("a place was lost");
        }
        assert!(sender.try_send((0, 0)).is_err(), "a place too many");
    }
}

/// Checks that each item is received, returned by the close, or given back to its sender, and
/// dropped once.
#[test]
fn a_close_loses_nothing_and_leaves_nothing_behind() {
    const SENDERS: usize = 4;
    const EACH: usize = 50;
    let counter = Arc::new(());
    let mut ends = [0; 3];
    for round in 0..scaled(300) {
        let (sender, receiver) = bounded(1 + round % 8);
        let threads: Vec<_> = (0..SENDERS)
            .map(|producer| {
                let (sender, counter) = (sender.clone(), Arc::clone(&counter));
                thread::spawn(move || {
                    let items = (0..EACH).map(|number| ((producer, number), Arc::clone(&counter)));
                    let refused = items.filter_map(|item| sender.send(item).err());
                    refused.map(SendError::into_inner).collect::<Vec<_>>()
                })
            })
            .collect();
        drop(sender);
        let mut order = Order::new(SENDERS);
        let mut check = |end: usize, (item, _counter): (Item, Arc<()>)| {
            order.check(item);
            ends[end] += 1;
        };
        for item in receiver.iter().take(round % 150) {
            check(0, item);
        }
        receiver.close().into_iter().for_each(|item| check(1, item));
        for thread in threads {
            join(thread).into_iter().for_each(|item| check(2, item));
        }
        assert!(order.is_complete(EACH), "items were lost");
        assert_eq!(Arc::strong_count(&counter), 1);
    }
    assert!(ends.iter().all(|end| *end > 0), "{ends:?}");
}

#[test]
fn a_receiver_that_goes_leaves_nothing_behind() {
    let counter = Arc::new(());
    for round in 0..scaled(300) {
        let (sender, receiver) = bounded(1 + round % 8);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (sender, counter) = (sender.clone(), Arc::clone(&counter));
                thread::spawn(move || while sender.send(Arc::clone(&counter)).is_ok() {})
            })
            .collect();
        for _ in 0..round % 50 {
            receiver.recv_timeout(LOST).unwrap();
        }
        drop(receiver);
        threads.into_iter().for_each(join);
        drop(sender);
        assert_eq!(Arc::strong_count(&counter), 1);
    }
}

thread_local! {
    static LINE: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_bound_of_nothing_is_refused_where_it_is_asked_for() {
    add_panic_hook(|info, others| {
        LINE.set(info.location().map_or(0, Location::line));
        others(info);
    });
    let (line, asked) = (line!(), panic::catch_unwind(|| drop(bounded::<u8>(0))));
    assert!(asked.is_err());
    assert_eq!(LINE.get(), line);
}
