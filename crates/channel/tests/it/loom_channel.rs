//! Models of hand-overs while receives and sends give up, and of a close against both.

use crate::poll_once;
use ganger_channel::{RecvError, SendError, channel};
use ganger_sync::{model, thread};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Checks that in each order the value is received once, or its sender has it.
// pins: Q4
#[test]
fn a_receive_gives_up_while_it_is_served() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let mut recv = Box::new(receiver.recv());
        assert!(poll_once(&mut *recv).is_none());
        let other = thread::spawn(move || sender.try_send(1));
        drop(recv);
        let sent = other.join().unwrap();
        let left = receiver.try_recv();
        match sent {
            Ok(()) => assert_eq!(left, Ok(1)),
            Err(_) => assert_eq!(left, Err(RecvError::Closed)),
        }
    });
}

// pins: Q4
#[test]
fn a_send_gives_up_while_its_value_is_taken() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let mut send = Box::new(sender.send(1));
        assert!(poll_once(&mut *send).is_none());
        let other = thread::spawn(move || receiver.try_recv());
        let back = send.into_value();
        assert_eq!(other.join().unwrap().ok().is_some(), back.is_none());
    });
}

/// Checks that a waiting thread is woken, and that each value is received or comes back.
// pins: Q3
#[test]
fn a_close_meets_a_send_that_waits() {
    model::check(2, || {
        let (sender, receiver) = channel(1);
        sender.try_send(1).unwrap();
        let other = thread::spawn(move || sender.send_blocking(2));
        let first = receiver.try_recv();
        receiver.close();
        let sent = other.join().unwrap();
        assert_eq!(first, Ok(1));
        match sent {
            Ok(()) => assert_eq!(receiver.try_recv(), Ok(2)),
            Err(error) => assert_eq!(error, SendError::Closed(2)),
        }
        assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
    });
}

// pins: Q1
#[test]
fn threads_meet_without_a_buffer() {
    model::check(2, || {
        let (sender, receiver) = channel(0);
        let other = thread::spawn(move || sender.send_blocking(1));
        assert_eq!(receiver.recv_blocking(), Ok(1));
        assert_eq!(other.join().unwrap(), Ok(()));
        assert_eq!(receiver.recv_blocking(), Err(RecvError::Closed));
    });
}

/// Takes a value without the lock, while another thread closes the channel: one of the threads sees
/// that no value may come back.
// pins: Q3
#[test]
fn a_value_is_taken_for_good_while_the_channel_is_closed() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let mut recv = Box::new(receiver.recv());
        assert!(poll_once(&mut *recv).is_none());
        sender.try_send(1).unwrap();
        let other = thread::spawn(move || sender.close());
        assert_eq!(poll_once(&mut *recv), Some(Ok(1)));
        assert!(other.join().unwrap());
        assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
    });
}

/// Frees the place of a waiter after its outcome, while the other thread may still be inside.
// pins: Q4
#[test]
fn waiters_end_while_they_are_served() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let other = thread::spawn(move || {
            let mut recv = Box::new(receiver.recv());
            loop {
                if let Some(got) = poll_once(&mut *recv) {
                    return got;
                }
                thread::yield_now();
            }
        });
        let mut send = Box::new(sender.send(1));
        while poll_once(&mut *send).is_none() {
            thread::yield_now();
        }
        assert_eq!(other.join().unwrap(), Ok(1));
    });
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed: the other thread is joined before the test looks.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves a waiter while another task polls it: the new task has been woken, or this poll finds the
/// value.
// pins: Q2
#[test]
fn a_wait_changes_its_waker_while_it_is_served() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let mut recv = Box::new(receiver.recv());
        assert!(poll_once(&mut *recv).is_none());
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let other = thread::spawn(move || sender.try_send(1));
        let first = Pin::new(&mut *recv).poll(&mut Context::from_waker(&waker));
        assert_eq!(other.join().unwrap(), Ok(()));
        match first {
            Poll::Ready(got) => assert_eq!(got, Ok(1)),
            Poll::Pending => {
                // Ordering: Relaxed: as in `wake`.
                assert!(woken.0.load(Ordering::Relaxed));
                assert_eq!(poll_once(&mut *recv), Some(Ok(1)));
            }
        }
    });
}

/// Gives a value back while the channel is closed: the value is received once before the end.
// pins: Q3
#[test]
fn a_value_comes_back_while_the_channel_is_closed() {
    model::check(3, || {
        let (sender, receiver) = channel(0);
        let mut recv = Box::new(receiver.recv());
        let mut next = Box::new(receiver.recv());
        assert!(poll_once(&mut *recv).is_none());
        sender.try_send(1).unwrap();
        assert!(poll_once(&mut *next).is_none());
        let other = thread::spawn(move || sender.close());
        drop(recv);
        assert!(other.join().unwrap());
        assert_eq!(poll_once(&mut *next), Some(Ok(1)));
        assert_eq!(receiver.try_recv(), Err(RecvError::Closed));
    });
}

/// Settles two claims while the channel is closed: a thread sees the end, and tells it.
// pins: Q3
#[test]
fn two_values_are_taken_for_good_while_the_channel_is_closed() {
    model::check(2, || {
        let (sender, receiver) = channel(0);
        let (mut one, mut two, mut waits) = (
            Box::new(receiver.recv()),
            Box::new(receiver.recv()),
            Box::new(receiver.recv()),
        );
        assert!(poll_once(&mut *one).is_none() && poll_once(&mut *two).is_none());
        sender.try_send(1).unwrap();
        sender.try_send(2).unwrap();
        assert!(poll_once(&mut *waits).is_none());
        let other = thread::spawn(move || sender.close());
        assert_eq!(poll_once(&mut *one), Some(Ok(1)));
        assert_eq!(poll_once(&mut *two), Some(Ok(2)));
        assert!(other.join().unwrap());
        assert_eq!(poll_once(&mut *waits), Some(Err(RecvError::Closed)));
    });
}
