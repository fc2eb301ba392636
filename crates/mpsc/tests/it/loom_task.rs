//! Models of a receiving task against sends and against drops of senders. The model reports a lost
//! wake-up as a deadlock. A wake-up too many shows in the count.
#![cfg(feature = "async")]

use crate::outcomes::Outcomes;
use crate::polling::Task;
use ganger_mpsc::{RecvError, channel};
use ganger_sync::{model, thread};
use std::task::Poll;

#[test]
fn receiving_against_sends_and_the_end() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(3, move || {
        let (sender, receiver) = channel();
        let mut receiver = receiver.into_async();
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender.send(2).unwrap();
        });
        let (task, mut sleeps) = (Task::new(), 0);
        let mut receive = || task.receive(&mut receiver, &mut sleeps);
        assert_eq!(receive(), Ok(1));
        assert_eq!(receive(), Ok(2));
        assert_eq!(receive(), Err(RecvError));
        thread.join().unwrap();
        assert_eq!(task.wakes(), sleeps);
        seen.note(sleeps);
    });
    outcomes.check(0..=3);
}

#[test]
fn receiving_against_two_senders() {
    model::check(2, || {
        let (sender, receiver) = channel();
        let mut receiver = receiver.into_async();
        let threads = [1, 2].map(|item| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(item).unwrap())
        });
        drop(sender);
        let (task, mut sleeps) = (Task::new(), 0);
        let mut receive = || task.receive(&mut receiver, &mut sleeps);
        let mut items = [receive(), receive()];
        items.sort_unstable_by_key(|item| item.ok());
        assert_eq!(items, [Ok(1), Ok(2)]);
        assert_eq!(receive(), Err(RecvError));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(task.wakes(), sleeps);
    });
}

#[test]
fn the_last_sender_goes_without_a_word() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(3, move || {
        let (sender, receiver) = channel::<u32>();
        let mut receiver = receiver.into_async();
        let threads = [sender.clone(), sender].map(|sender| thread::spawn(move || drop(sender)));
        let (task, mut sleeps) = (Task::new(), 0);
        assert_eq!(task.receive(&mut receiver, &mut sleeps), Err(RecvError));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(task.wakes(), sleeps);
        seen.note(sleeps);
    });
    outcomes.check([0, 1]);
}

/// Checks that only the waker of the last poll counts.
#[test]
fn a_waker_that_is_replaced_against_a_send() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let (sender, receiver) = channel();
        let mut receiver = receiver.into_async();
        let tasks = [Task::new(), Task::new()];
        assert!(tasks[0].poll(&mut receiver).is_pending());
        let thread = thread::spawn(move || {
            sender.send(1).unwrap();
            sender
        });
        let polled = tasks[1].poll(&mut receiver);
        if polled.is_pending() {
            tasks[1].sleep();
            assert_eq!(tasks[1].poll(&mut receiver), Poll::Ready(Ok(1)));
        } else {
            assert_eq!(polled, Poll::Ready(Ok(1)));
        }
        let _sender = thread.join().unwrap();
        let wakes = tasks.map(|task| task.wakes());
        if polled.is_pending() {
            assert_eq!(wakes, [0, 1]);
        }
        seen.note((polled.is_pending(), wakes));
    });
    // The sender with the token need wake no task if the poll has taken the item, and its waker
    // back.
    let taken = [(false, [0, 0]), (false, [0, 1]), (false, [1, 0])];
    outcomes.check(taken.into_iter().chain([(true, [0, 1])]));
}

/// Polls a task unwoken, which may meet a sender with the unused token of an earlier park.
#[test]
fn spurious_polls_against_two_sends() {
    model::check(3, || {
        let (sender, receiver) = channel();
        let mut receiver = receiver.into_async();
        let (task, mut sleeps) = (Task::new(), 0);
        assert!(task.poll(&mut receiver).is_pending());
        let threads = [1, 2].map(|item| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(item).unwrap())
        });
        let mut receive = || task.receive(&mut receiver, &mut sleeps);
        let mut items = [receive(), receive()];
        items.sort_unstable_by_key(|item| item.ok());
        assert_eq!(items, [Ok(1), Ok(2)]);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(task.wakes() <= 2, "more wake-ups than arrivals");
    });
}

#[test]
fn a_thread_takes_over_from_a_task_that_waits() {
    model::check(4, || {
        let (sender, receiver) = channel();
        let mut receiver = receiver.into_async();
        let task = Task::new();
        assert!(task.poll(&mut receiver).is_pending());
        let thread = thread::spawn(move || sender.send(1).unwrap());
        let receiver = receiver.into_blocking();
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.recv(), Err(RecvError));
        thread.join().unwrap();
    });
}
