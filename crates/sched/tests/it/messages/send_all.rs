//! Sends of many messages to a process.

use crate::support::*;
use ganger_proc_api::{Event, Message, Payload, Process, SendErrorKind};
use ganger_sched::Scheduler;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::{mem, thread};

/// The number of messages in a push.
const LOT: u64 = 128;

type Seen = Arc<Mutex<Vec<u64>>>;

/// Creates a process that notes its numbers, and ends after `enough` of them.
fn reader(seen: &Seen, enough: u64) -> impl Process {
    let seen = Arc::clone(seen);
    process(move |_, events, out| {
        let mut seen = seen.lock().unwrap();
        for event in events {
            if let Event::Message(message) = event {
                seen.push(number(message));
            }
        }
        if seen.len() as u64 >= enough {
            out.done(());
        }
        Ok(())
    })
}

fn number(message: Message) -> u64 {
    message.payloads.into_first().as_u64().unwrap()
}

fn messages(numbers: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Message> {
    numbers.into_iter().map(|n| Message::new("n", n))
}

fn numbers(messages: Vec<Message>) -> Vec<u64> {
    messages.into_iter().map(number).collect()
}

fn limited(limit: u64) -> Scheduler {
    let limit = usize::try_from(limit).unwrap();
    let builder = Scheduler::builder().workers(1);
    builder.mailbox_limit(limit).build().unwrap()
}

// pins: P4, R4
#[test]
fn messages_of_many_senders_arrive_once_and_in_the_order_of_each() {
    const SENDERS: u64 = 4;
    const EACH: u64 = 5_000;
    for workers in [1, 2, 4] {
        let scheduler = start(workers);
        let seen = Seen::default();
        let reader = reader(&seen, SENDERS * EACH);
        let reader = scheduler.submit(reader, "main", ()).unwrap();
        thread::scope(|scope| {
            for sender in 0..SENDERS {
                let to = reader.address().clone();
                scope.spawn(move || {
                    let mut next = sender * EACH;
                    let end = next + EACH;
                    let mut random = fastrand::Rng::with_seed(sender);
                    while next < end {
                        // Now and then a single message, none, or several lots.
                        let count = random.u64(0..4 * LOT).min(end - next);
                        to.send_all(messages(next..next + count)).unwrap();
                        next += count;
                        if next < end && random.bool() {
                            to.send(Message::new("n", next)).unwrap();
                            next += 1;
                        }
                    }
                });
            }
        });
        exit(reader);
        let seen = seen.lock().unwrap();
        for sender in 0..SENDERS {
            let own = sender * EACH..(sender + 1) * EACH;
            let of_it = seen.iter().copied().filter(|n| own.contains(n));
            assert!(of_it.eq(own.clone()), "{workers} workers, sender {sender}");
        }
        assert_eq!(seen.len() as u64, SENDERS * EACH);
    }
}

// pins: R2
#[test]
fn an_ended_process_gives_all_messages_back() {
    let scheduler = start(1);
    let waiter = scheduler.submit(waiter(), "main", ()).unwrap();
    let address = waiter.address().clone();
    scheduler.cancel(waiter.pid(), "end").unwrap();
    exit(waiter);
    let error = address.send_all(messages(0..1_000)).unwrap_err();
    assert_eq!((rough(error.kind), error.sent), (ENDED, 0));
    let text = error.to_string();
    let expected = format!(
        "can't send 1000 more messages to {} after 0: ",
        address.pid()
    );
    assert!(text.starts_with(&expected), "{text}");
    assert_eq!(error.target, address.pid());
    assert!(numbers(error.messages).into_iter().eq(0..1_000));
    address.send_all([]).unwrap();
}

// pins: R2
#[test]
fn what_is_not_sent_before_the_process_ends_comes_back() {
    let scheduler = start(1);
    let seen = Seen::default();
    let reader = scheduler.submit(reader(&seen, 1), "main", ()).unwrap();
    let until_ended = |n: u64| {
        if n == LOT {
            until("the first lot has ended the process", || {
                reader.is_finished()
            });
        }
    };
    let error = reader
        .address()
        .send_all(messages((0..500).inspect(|&n| until_ended(n))))
        .unwrap_err();
    assert_eq!((rough(error.kind), error.sent as u64), (ENDED, LOT));
    assert!(numbers(error.messages).into_iter().eq(LOT..500));
}

/// An iterator of this many messages: it claims an impossible number.
struct Boastful(u64);

impl Iterator for Boastful {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        self.0 = self.0.checked_sub(1)?;
        Some(Message::new("n", self.0))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

// pins: R2
#[test]
fn an_iterator_that_says_more_than_it_has_gets_all_of_it_back() {
    let scheduler = limited(10);
    let waiter = scheduler.submit(waiter(), "main", ()).unwrap();
    let error = waiter.address().send_all(Boastful(1_000)).unwrap_err();
    assert_eq!(error.sent, 10);
    assert!(numbers(error.messages).into_iter().eq((0..990).rev()));
    scheduler.terminate(waiter.pid()).unwrap();
}

// pins: P13, R2
#[test]
fn as_many_are_sent_as_there_is_room_for() {
    for (limit, count) in [(10, 25), (LOT, 2 * LOT), (200, 1_000), (300, 300)] {
        let scheduler = limited(limit);
        let seen = Seen::default();
        let reader = reader(&seen, count);
        let reader = scheduler.submit(reader, "main", ()).unwrap();
        let mut left: Vec<_> = messages(0..count).collect();
        let mut send_what_is_left = || {
            let result = reader.address().send_all(mem::take(&mut left));
            let sent = result.map_err(|error| {
                assert_eq!(error.kind, SendErrorKind::Full);
                left = error.messages;
                error.sent as u64
            });
            (sent, left.len() as u64)
        };
        let (sent, rest) = send_what_is_left();
        let all_fit = count <= limit;
        assert_eq!(sent, if all_fit { Ok(()) } else { Err(limit) });
        assert_eq!(rest, count.saturating_sub(limit));
        scheduler.start().unwrap();
        until("all have been sent", || {
            all_fit || send_what_is_left().0.is_ok()
        });
        exit(reader);
        assert!(seen.lock().unwrap().iter().copied().eq(0..count), "{limit}");
    }
}

// pins: P13
#[test]
fn what_is_refused_beside_who_waits_for_room_is_not_delivered() {
    let scheduler = limited(2);
    let seen = Seen::default();
    let reader = scheduler.submit(reader(&seen, 3), "main", ()).unwrap();
    let address = reader.address();
    address.send_all(messages(0..2)).unwrap();
    let mut waits = address.send_async(Message::new("n", 2_u64));
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut waits).poll(&mut context).is_pending());
    let error = address.send_all(messages(3..4)).unwrap_err();
    assert_eq!((error.kind, error.sent), (SendErrorKind::Full, 0));
    scheduler.start().unwrap();
    exit(reader);
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2]);
}

/// Counts its drop.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        // Ordering: SeqCst: a count of a test.
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_iterator_that_panics_drops_what_has_not_been_put_in() {
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let seen = Seen::default();
    let reader = scheduler
        .submit(reader(&seen, u64::MAX), "main", ())
        .unwrap();
    let dropped = Arc::new(AtomicUsize::new(0));
    let counted = (0..).map(|n: u64| {
        assert!(n < LOT + 10, "the iterator's own");
        let counted = Payload::any(Counted(Arc::clone(&dropped)));
        Message::new("n", [Payload::from(n), counted])
    });
    let sent = catch_unwind(AssertUnwindSafe(|| reader.address().send_all(counted)));
    assert!(sent.is_err());
    // Ordering: SeqCst: a count of a test.
    let dropped_so_far = || dropped.load(Ordering::SeqCst) as u64;
    assert_eq!(dropped_so_far(), 10);
    reader.address().send_all(messages([LOT])).unwrap();
    scheduler.start().unwrap();
    until("they were read", || seen.lock().unwrap().len() as u64 > LOT);
    assert!(seen.lock().unwrap().iter().copied().eq(0..=LOT));
    assert_eq!(dropped_so_far(), 10 + LOT);
    scheduler.terminate(reader.pid()).unwrap();
    exit(reader);
}
