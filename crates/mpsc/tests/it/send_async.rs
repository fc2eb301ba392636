//! Sends with a wait in a task: their wake-ups, and the effects of dropping them.
//! `GANGER_STRESS=10` makes the long tests ten times as long.
#![cfg(all(feature = "async", not(ganger_loom)))]

use crate::polling::Task;
use crate::support::{LOST, Order, join, scaled};
use ganger_mpsc::{
    BoundedSender, Receiver, SendError, SendFuture, TryRecvError, TrySendError, bounded,
};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;

fn poll<T>(task: &Arc<Task>, future: &mut SendFuture<'_, T>) -> Poll<Result<(), SendError<T>>> {
    Pin::new(future).poll(&mut Context::from_waker(&task.waker()))
}

/// Sends on this thread, which sleeps while the channel has no room.
fn send<T>(sender: &BoundedSender<T>, item: T) -> Result<(), SendError<T>> {
    let (task, mut future) = (Task::new(), sender.send_async(item));
    loop {
        if let Poll::Ready(sent) = poll(&task, &mut future) {
            return sent;
        }
        task.sleep();
    }
}

fn full(capacity: usize) -> (BoundedSender<usize>, Receiver<usize>) {
    let (sender, receiver) = bounded(capacity);
    (0..capacity).for_each(|item| sender.try_send(item).unwrap());
    (sender, receiver)
}

#[test]
fn a_send_with_room_does_not_wait() {
    let (sender, receiver) = bounded(1);
    let task = Task::new();
    let mut future = sender.send_async(7);
    // The future does nothing before it is polled.
    assert!(receiver.is_empty());
    assert_eq!(poll(&task, &mut future), Poll::Ready(Ok(())));
    assert_eq!((receiver.recv(), task.wakes()), (Ok(7), 0));
}

#[test]
fn a_send_waits_for_a_lot() {
    let (sender, receiver) = full(16);
    let (task, next) = (Task::new(), Task::new());
    let mut future = sender.send_async(16);
    let mut behind = sender.send_async(17);
    assert!(poll(&task, &mut future).is_pending());
    assert!(poll(&next, &mut behind).is_pending());
    for item in 0..4 {
        assert_eq!(task.wakes(), 0);
        assert_eq!(receiver.recv(), Ok(item));
    }
    assert_eq!(task.wakes(), 1);
    assert_eq!(poll(&task, &mut future), Poll::Ready(Ok(())));
    assert_eq!(next.wakes(), 0, "woken for less than a lot");
    assert!(receiver.drain().into_iter().eq(4..17));
    assert_eq!((task.wakes(), next.wakes()), (1, 1));
}

/// Wakes the third of three sends. A lot is two places. Three sends wait, and the receiver has
/// taken two lots of the five items.
fn wake_the_third(end: impl FnOnce(&Receiver<usize>)) {
    let (sender, receiver) = full(5);
    let tasks = [(); 3].map(|()| Task::new());
    let mut futures = [5, 6, 7].map(|item| sender.send_async(item));
    for (task, future) in tasks.iter().zip(&mut futures) {
        assert!(poll(task, future).is_pending());
    }
    let wakes = || tasks.each_ref().map(|task| task.wakes());
    assert!(receiver.iter().take(4).eq(0..4));
    assert_eq!(wakes(), [1, 1, 0]);
    end(&receiver);
    assert_eq!(wakes(), [1, 1, 1], "a send sleeps beside room");
}

#[test]
fn a_receiver_that_finds_nothing_wakes() {
    wake_the_third(|receiver| {
        assert_eq!(receiver.recv(), Ok(4));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    });
}

#[test]
fn a_drain_of_less_than_a_lot_wakes() {
    wake_the_third(|receiver| assert_eq!(receiver.drain().len(), 1));
}

#[test]
fn those_that_wait_are_woken_in_turn() {
    let (sender, receiver) = full(4);
    let tasks = [(); 3].map(|()| Task::new());
    let mut futures = [4, 5, 6].map(|item| sender.send_async(item));
    for (task, future) in tasks.iter().zip(&mut futures) {
        assert!(poll(task, future).is_pending());
    }
    let wakes = || tasks.each_ref().map(|task| task.wakes());
    assert_eq!(receiver.recv(), Ok(0));
    assert_eq!(wakes(), [1, 0, 0]);
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(wakes(), [1, 1, 0]);
    assert!(poll(&tasks[1], &mut futures[1]).is_ready());
    // The channel had room for one more; the second send has woken the third, but the first gets
    // it.
    assert!(poll(&tasks[0], &mut futures[0]).is_ready());
    assert_eq!(wakes(), [1, 1, 1]);
    assert!(poll(&tasks[2], &mut futures[2]).is_pending());
    assert!(receiver.drain().into_iter().eq([2, 3, 5, 4]));
    assert_eq!(wakes(), [1, 1, 2]);
    assert!(poll(&tasks[2], &mut futures[2]).is_ready());
}

#[test]
fn a_send_that_is_dropped_leaves_its_turn_to_the_next() {
    for first_is_woken in [false, true] {
        let (sender, receiver) = full(1);
        let tasks = [(); 2].map(|()| Task::new());
        let mut futures = [1, 2].map(|item| Some(sender.send_async(item)));
        for (task, future) in tasks.iter().zip(futures.iter_mut().flatten()) {
            assert!(poll(task, future).is_pending());
        }
        if first_is_woken {
            assert_eq!(receiver.recv(), Ok(0));
            futures[0] = None;
        } else {
            futures[0] = None;
            assert_eq!(receiver.recv(), Ok(0));
        }
        let wakes = tasks.each_ref().map(|task| task.wakes());
        assert_eq!(wakes, [usize::from(first_is_woken), 1]);
        let second = futures[1].as_mut().unwrap();
        assert_eq!(poll(&tasks[1], second), Poll::Ready(Ok(())));
        assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
        assert_eq!(receiver.recv(), Ok(2));
        assert_eq!(sender.try_send(3), Ok(()), "a place was lost");
    }
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let (sender, receiver) = full(1);
    let tasks = [(); 2].map(|()| Task::new());
    let mut future = sender.send_async(1);
    assert!(poll(&tasks[0], &mut future).is_pending());
    assert!(poll(&tasks[1], &mut future).is_pending());
    assert_eq!(Arc::strong_count(&tasks[0]), 1, "a waker was kept");
    assert_eq!(receiver.recv(), Ok(0));
    assert_eq!(tasks.each_ref().map(|task| task.wakes()), [0, 1]);
    assert!(poll(&tasks[1], &mut future).is_ready());
    assert_eq!(Arc::strong_count(&tasks[1]), 1, "a waker was kept");
}

#[test]
fn a_send_that_waits_gets_its_item_back_at_the_end() {
    for is_closed in [false, true] {
        let (sender, receiver) = full(1);
        let task = Task::new();
        let mut future = sender.send_async(1);
        assert!(poll(&task, &mut future).is_pending());
        if is_closed {
            assert_eq!(receiver.close().len(), 1);
        } else {
            drop(receiver);
        }
        assert_eq!(task.wakes(), 1);
        assert_eq!(poll(&task, &mut future), Poll::Ready(Err(SendError(1))));
        assert_eq!(Arc::strong_count(&task), 1, "a waker was kept");
        assert_eq!(send(&sender, 2), Err(SendError(2)));
    }
}

#[test]
#[should_panic(expected = "a send was polled after it was ready")]
fn a_send_is_ready_once() {
    let (sender, _receiver) = bounded(1);
    let (task, mut future) = (Task::new(), sender.send_async(1));
    assert!(poll(&task, &mut future).is_ready());
    let _never = poll(&task, &mut future);
}

#[test]
fn a_send_says_whether_it_is_over() {
    let (sender, _receiver) = bounded(1);
    let (task, mut future) = (Task::new(), sender.send_async(1));
    assert_eq!(format!("{future:?}"), "SendFuture { is_ready: false, .. }");
    assert!(poll(&task, &mut future).is_ready());
    assert_eq!(format!("{future:?}"), "SendFuture { is_ready: true, .. }");
}

/// Mixes tasks that wait, tasks that give up, and waiting threads: each item comes once and in
/// order, or not at all if its future was dropped, and no place is lost.
#[test]
fn a_dropped_send_takes_no_place() {
    const SENDERS: usize = 4;
    for capacity in [1, 5, 16] {
        let count = scaled(2_000);
        let (sender, receiver) = bounded(capacity);
        let threads: Vec<_> = (0..SENDERS)
            .map(|producer| {
                let sender = sender.clone();
                thread::spawn(move || {
                    for number in 0..count {
                        let item = (producer, number);
                        let task = Task::new();
                        let mut abandoned = sender.send_async(item);
                        let polled = match number % 3 {
                            0 => Poll::Pending,
                            _ => poll(&task, &mut abandoned),
                        };
                        if number % 2 == 0 {
                            thread::yield_now();
                        }
                        drop(abandoned);
                        match polled {
                            Poll::Ready(sent) => sent.unwrap(),
                            Poll::Pending if producer % 2 == 0 => send(&sender, item).unwrap(),
                            Poll::Pending => sender.send(item).unwrap(),
                        }
                    }
                })
            })
            .collect();
        let mut order = Order::new(SENDERS);
        while !order.is_complete(count) {
            order.check(receiver.recv_timeout(LOST).unwrap());
        }
        threads.into_iter().for_each(join);
        for place in 0..capacity {
            assert_eq!(sender.try_send((0, place)), Ok(()), "a place was lost");
        }
        assert!(sender.try_send((0, 0)).is_err(), "a place too many");
    }
}
