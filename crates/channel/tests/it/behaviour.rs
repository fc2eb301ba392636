//! The view of senders and receivers, poll by poll.

use crate::support::{Bell, now, poll};
use ganger_channel::{RecvError, SendError, channel, unbounded};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

// pins: Q1
#[test]
fn a_receiver_that_waits_is_handed_the_value() {
    for capacity in [0, 1, 7] {
        let (sender, receiver) = channel(capacity);
        let (bell, waker) = Bell::new();
        let mut recv = receiver.recv();
        assert!(poll(&mut recv, &waker).is_pending());
        sender.try_send(5).unwrap();
        assert_eq!(
            (bell.rung(), receiver.len()),
            (1, 0),
            "it did not go through the buffer"
        );
        assert_eq!(
            receiver.try_recv(),
            Err(RecvError::Empty),
            "another one can't take it"
        );
        assert_eq!(poll(&mut recv, &waker), Poll::Ready(Ok(5)));
    }
}

// pins: Q1
#[test]
fn the_head_goes_out_and_the_value_of_a_sender_that_waits_goes_to_the_tail_at_once() {
    let (sender, receiver) = channel(2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    let (bell, waker) = Bell::new();
    let mut send = sender.send(3);
    assert!(poll(&mut send, &waker).is_pending());
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!((bell.rung(), receiver.len()), (1, 2));
    assert_eq!(
        sender.try_send(4),
        Err(SendError::Full(4)),
        "a newcomer does not overtake it"
    );
    assert_eq!(now(&mut send), Poll::Ready(Ok(())));
    assert_eq!([receiver.try_recv(), receiver.try_recv()], [Ok(2), Ok(3)]);
}

// pins: Q1
#[test]
fn without_a_buffer_a_send_is_over_when_a_receiver_has_the_value() {
    let (sender, receiver) = channel(0);
    assert_eq!(sender.try_send(1), Err(SendError::Full(1)));
    let mut send = sender.send(2);
    assert!(now(&mut send).is_pending());
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(now(&mut send), Poll::Ready(Ok(())));
}

// pins: Q2
#[test]
fn those_that_wait_are_served_in_the_order_in_which_they_began() {
    let (sender, receiver) = channel(0);
    let mut receives = [(); 3].map(|()| receiver.recv());
    assert!(receives.iter_mut().all(|it| now(it).is_pending()));
    for value in 0..3 {
        sender.try_send(value).unwrap();
    }
    let got = receives.each_mut().map(now);
    assert_eq!(got, [0, 1, 2].map(|value| Poll::Ready(Ok(value))));

    let mut sends = [0, 1, 2, 3].map(|value| sender.send(value));
    assert!(sends.iter_mut().all(|it| now(it).is_pending()));
    let [_, second, ..] = sends;
    drop(second);
    assert_eq!(
        [0, 2, 3].map(|_| receiver.try_recv()),
        [Ok(0), Ok(2), Ok(3)]
    );
}

// pins: Q3
#[test]
fn a_close_lets_receivers_drain_and_gives_senders_their_values_back() {
    let (sender, receiver) = channel(1);
    sender.try_send(1).unwrap();
    let (bell, waker) = Bell::new();
    let mut send = sender.send(2);
    assert!(poll(&mut send, &waker).is_pending());
    assert!(
        receiver.close() && !sender.close(),
        "the second close does nothing"
    );
    assert_eq!(bell.rung(), 1);
    assert_eq!(now(&mut send), Poll::Ready(Err(SendError::Closed(2))));
    assert_eq!(sender.try_send(3), Err(SendError::Closed(3)));
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
    assert_eq!(
        now(&mut receiver.recv()),
        Poll::Ready(Err(RecvError::Closed))
    );
}

// pins: Q3
#[test]
fn when_all_senders_are_gone_the_channel_is_closed() {
    let (sender, receiver) = unbounded::<u32>();
    let other = sender.clone();
    let (bell, waker) = Bell::new();
    let mut recv = receiver.recv();
    assert!(poll(&mut recv, &waker).is_pending());
    drop(sender);
    assert_eq!(bell.rung(), 0);
    drop(other);
    assert_eq!(bell.rung(), 1);
    assert_eq!(now(&mut recv), Poll::Ready(Err(RecvError::Closed)));
}

// pins: Q3
#[test]
fn when_all_receivers_are_gone_senders_get_their_values_back_and_the_rest_is_dropped() {
    let (sender, receiver) = channel(1);
    let value = Arc::new(());
    sender.try_send(Arc::clone(&value)).unwrap();
    let mut send = sender.send(Arc::clone(&value));
    assert!(now(&mut send).is_pending());
    drop(receiver);
    assert_eq!(
        Arc::strong_count(&value),
        2,
        "what was in the buffer is dropped"
    );
    assert!(matches!(
        now(&mut send),
        Poll::Ready(Err(SendError::Closed(_)))
    ));
}

// pins: Q4
#[test]
fn a_value_on_its_way_to_a_receive_that_is_dropped_goes_to_the_next() {
    for capacity in [0, 3] {
        let (sender, receiver) = channel(capacity);
        let (mut first, mut second) = (receiver.recv(), receiver.recv());
        assert!(now(&mut first).is_pending() && now(&mut second).is_pending());
        sender.try_send(1).unwrap();
        drop(first);
        assert_eq!(now(&mut second), Poll::Ready(Ok(1)));
    }
}

// pins: Q4
#[test]
fn values_that_come_back_are_received_first_and_in_order() {
    for reverse in [false, true] {
        let (sender, receiver) = channel(1);
        let mut receives = [(); 3].map(|()| Some(receiver.recv()));
        for receive in receives.iter_mut().flatten() {
            assert!(now(receive).is_pending());
        }
        for value in 1..=4 {
            sender.try_send(value).unwrap();
        }
        if reverse {
            receives.reverse();
        }
        receives.iter_mut().for_each(|it| drop(it.take()));
        assert_eq!(receiver.len(), 4);
        let got: Vec<_> = (0..4).map(|_| receiver.try_recv().unwrap()).collect();
        assert_eq!(got, [1, 2, 3, 4]);
    }
}

// pins: Q4
#[test]
fn a_send_that_is_dropped_has_sent_nothing() {
    let (sender, receiver) = channel(0);
    let value = Arc::new(());
    let mut send = sender.send(Arc::clone(&value));
    assert!(now(&mut send).is_pending());
    drop(send);
    assert_eq!(Arc::strong_count(&value), 1);
    assert!(receiver.try_recv().is_err());
    let mut send = sender.send(Arc::clone(&value));
    assert!(now(&mut send).is_pending());
    assert!(send.into_value().is_some());
}

// pins: Q5
#[test]
fn threads_wait_for_each_other_and_for_no_longer_than_they_are_told() {
    let (sender, receiver) = channel(0);
    let short = Duration::from_millis(1);
    assert_eq!(sender.send_timeout(1, short), Err(SendError::Timeout(1)));
    assert_eq!(receiver.recv_timeout(short), Err(RecvError::Timeout));
    let other = thread::spawn(move || {
        for value in 0..1_000 {
            sender.send_blocking(value).unwrap();
        }
    });
    for value in 0..1_000 {
        assert_eq!(receiver.recv_blocking(), Ok(value));
    }
    assert_eq!(receiver.recv_blocking(), Err(RecvError::Closed));
    other.join().unwrap();
}

// pins: Q3
#[test]
fn nothing_is_received_after_word_that_all_has_been() {
    let (sender, receiver) = channel::<u32>(0);
    let other = receiver.clone();
    let mut served = Box::pin(async { receiver.recv().await });
    assert!(now(&mut served).is_pending());
    sender.try_send(1).unwrap();
    drop(sender);
    // The value may come back, so the channel does not yet report its end.
    assert_eq!(other.try_recv(), Err(RecvError::Empty));
    let (bell, waker) = Bell::new();
    let mut waits = other.recv();
    assert!(poll(&mut waits, &waker).is_pending());
    drop(served);
    assert_eq!(bell.rung(), 1);
    assert_eq!(now(&mut waits), Poll::Ready(Ok(1)));
    assert_eq!(other.try_recv(), Err(RecvError::Closed));
}

// pins: Q3
#[test]
fn receivers_are_told_of_the_end_when_the_last_value_is_taken_for_good() {
    let (sender, receiver) = channel::<u32>(0);
    let mut served = receiver.recv();
    assert!(now(&mut served).is_pending());
    sender.try_send(1).unwrap();
    sender.close();
    let (bell, waker) = Bell::new();
    let mut waits = receiver.recv();
    assert!(poll(&mut waits, &waker).is_pending());
    assert_eq!(now(&mut served), Poll::Ready(Ok(1)));
    assert_eq!(bell.rung(), 1);
    assert_eq!(now(&mut waits), Poll::Ready(Err(RecvError::Closed)));
}

/// Checks that a waiter has the task of its last poll woken, and not an earlier task.
// pins: Q2
#[test]
fn a_wait_that_is_polled_by_another_task_wakes_this_task() {
    let (sender, receiver) = channel::<u32>(0);
    let [(first, first_waker), (second, second_waker)] = [Bell::new(), Bell::new()];
    let mut recv = receiver.recv();
    assert!(poll(&mut recv, &first_waker).is_pending());
    assert!(poll(&mut recv, &second_waker).is_pending());
    sender.try_send(1).unwrap();
    assert_eq!((first.rung(), second.rung()), (0, 1));
    assert_eq!(poll(&mut recv, &first_waker), Poll::Ready(Ok(1)));
    let mut send = sender.send(2);
    assert!(poll(&mut send, &first_waker).is_pending());
    assert!(poll(&mut send, &second_waker).is_pending());
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!((first.rung(), second.rung()), (0, 2));
    assert_eq!(poll(&mut send, &first_waker), Poll::Ready(Ok(())));
}
