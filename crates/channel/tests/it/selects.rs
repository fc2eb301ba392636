//! Selects: a single case is chosen, and the other cases leave no trace.

use crate::support::{Bell, now, poll};
use ganger_channel::{RecvCase, RecvError, Select, SelectError, channel, select};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

// pins: Q6
#[test]
fn one_case_is_chosen_and_no_value_is_lost() {
    let (a, from_a) = channel(1);
    let (b, from_b) = channel(1);
    let mut seen = BTreeSet::new();
    for round in 0..200 {
        a.try_send(('a', round)).unwrap();
        b.try_send(('b', round)).unwrap();
        let chosen = select()
            .recv(&from_a, |it| it)
            .recv(&from_b, |it| it)
            .try_now();
        let (chosen, its_round) = chosen.unwrap().unwrap();
        assert_eq!(its_round, round);
        let (left, other) = if chosen == 'a' {
            (&from_b, &from_a)
        } else {
            (&from_a, &from_b)
        };
        assert_eq!(left.try_recv().map(|it| it.1), Ok(round));
        assert_eq!(other.try_recv(), Err(RecvError::Empty));
        seen.insert(chosen);
    }
    assert_eq!(
        seen.len(),
        2,
        "each of those that are ready is chosen at times"
    );
}

/// Makes three of five cases ready, and checks that each of these is chosen about as often.
// pins: Q6
#[test]
fn it_chooses_among_those_that_are_ready_without_preference() {
    const ROUNDS: usize = 3_000;
    let channels: Vec<_> = (0..5).map(|_| channel(ROUNDS)).collect();
    let ready = [0, 1, 3];
    for (sender, _) in ready.iter().map(|&at| &channels[at]) {
        (0..ROUNDS).for_each(|it| sender.try_send(it).unwrap());
    }
    let mut chosen = [0_usize; 5];
    for _ in 0..ROUNDS {
        let cases: Vec<_> = channels
            .iter()
            .enumerate()
            .map(|(at, (_, receiver))| RecvCase::new(receiver, move |_| at))
            .collect();
        chosen[Select::of(cases).try_now().unwrap()] += 1;
    }
    assert_eq!((chosen[2], chosen[4]), (0, 0));
    let fair = ready.iter().all(|&at| (850..1_150).contains(&chosen[at]));
    assert!(fair, "{chosen:?}");
}

// pins: Q6
#[test]
fn a_select_that_waits_leaves_all_its_places_when_one_is_served() {
    let (a, from_a) = channel(0);
    let (b, from_b) = channel(0);
    let (bell, waker) = Bell::new();
    let mut both = select().recv(&from_a, |it| it).recv(&from_b, |it| it);
    assert!(poll(&mut both, &waker).is_pending());
    a.try_send(1).unwrap();
    assert_eq!(bell.rung(), 1);
    assert!(b.try_send(2).is_err(), "it is served once");
    assert_eq!(poll(&mut both, &waker), Poll::Ready(Ok(1)));
    assert!(a.try_send(3).is_err() && b.try_send(3).is_err());
}

// pins: Q6
#[test]
fn a_select_that_is_dropped_leaves_no_trace_and_gives_back_what_it_was_handed() {
    let (a, from_a) = channel(0);
    let mut waits = select().recv(&from_a, |it| it);
    assert!(now(&mut waits).is_pending());
    a.try_send(1).unwrap();
    drop(waits);
    assert_eq!(from_a.try_recv(), Ok(1));
    let mut waits = select().recv(&from_a, |it| it);
    assert!(now(&mut waits).is_pending());
    drop(waits);
    assert!(a.try_send(2).is_err());
}

// pins: Q6
#[test]
fn a_value_that_was_not_sent_is_left_in_its_place() {
    let (full, _kept) = channel(0);
    let (words, from_words) = channel(1);
    let mut value = Some(Arc::new(7));
    let mut wait = select()
        .send_from(&full, &mut value, |_| "sent")
        .recv(&from_words, |it| it.unwrap());
    assert!(now(&mut wait).is_pending());
    words.try_send("word").unwrap();
    assert_eq!(now(&mut wait), Poll::Ready("word"));
    drop(wait);
    assert_eq!(value.as_deref(), Some(&7));
    let none = select().send_from(&full, &mut None, |_| ()).try_now();
    assert!(none.is_none(), "no value is never sent");
}

// pins: Q7
#[test]
fn a_send_and_a_receive_in_selects_meet_without_a_buffer() {
    let (sender, receiver) = channel(0);
    let (_other, from_other) = channel::<u32>(0);
    let mut sends = select()
        .send(&sender, 5, |sent| {
            sent.map_err(|_| RecvError::Closed).and(Ok(0))
        })
        .recv(&from_other, |it| it);
    let mut receives = select().recv(&receiver, |it| it).recv(&from_other, |it| it);
    assert!(now(&mut sends).is_pending());
    assert_eq!(now(&mut receives), Poll::Ready(Ok(5)));
    assert_eq!(now(&mut sends), Poll::Ready(Ok(0)));
}

/// Checks that a select does not take its own value.
// pins: Q7
#[test]
fn a_select_does_not_meet_itself() {
    let (sender, receiver) = channel(0);
    let mut both = select()
        .send(&sender, 1, |_| 0)
        .recv(&receiver, |it| it.unwrap());
    for _ in 0..2 {
        assert!(now(&mut both).is_pending());
    }
    assert_eq!(receiver.try_recv(), Ok(1));
    assert_eq!(now(&mut both), Poll::Ready(0));
}

// pins: Q6
#[test]
fn a_closed_channel_is_a_case_that_is_ready() {
    let (sender, receiver) = channel::<u32>(0);
    let (bell, waker) = Bell::new();
    let mut wait = select()
        .recv(&receiver, |it| it.err())
        .future(std::future::pending(), |()| None);
    assert!(poll(&mut wait, &waker).is_pending());
    drop(sender);
    assert_eq!(bell.rung(), 1);
    assert_eq!(
        poll(&mut wait, &waker),
        Poll::Ready(Some(RecvError::Closed))
    );
}

// pins: Q6
#[test]
fn a_future_is_a_case_and_the_default_is_none() {
    let (sender, receiver) = channel::<u32>(0);
    assert_eq!(select().recv(&receiver, |it| it.ok()).try_now(), None);
    let ready = select()
        .recv(&receiver, |_| "value")
        .future(std::future::ready(()), |()| "future")
        .try_now();
    assert_eq!(ready, Some("future"));
    // A waiting future is polled again, and the places stay the same.
    let (bell, waker) = Bell::new();
    let (done, is_done) = channel::<()>(0);
    let mut recv = is_done.recv();
    let mut wait = select()
        .recv(&receiver, |_| "value")
        .future(&mut recv, |_| "future");
    for _ in 0..3 {
        assert!(poll(&mut wait, &waker).is_pending());
    }
    drop(done);
    assert_eq!(bell.rung(), 1);
    assert_eq!(poll(&mut wait, &waker), Poll::Ready("future"));
    assert!(sender.try_send(1).is_err());
}

// pins: Q5
#[test]
fn a_thread_waits_for_a_select_and_for_no_longer_than_it_is_told() {
    let (sender, receiver) = channel(0);
    let short = Duration::from_millis(1);
    let waited = select().recv(&receiver, |it| it).wait_timeout(short);
    assert_eq!(waited, Err(SelectError::Timeout));
    let (never, from_never) = channel::<u32>(0);
    let other = thread::spawn(move || {
        for value in 0..500 {
            let sent = select().send(&sender, value, |it| it.is_ok()).wait();
            assert_eq!(sent, Ok(true));
        }
    });
    for value in 0..500 {
        let got = select()
            .recv(&receiver, |it| it)
            .recv(&from_never, |it| it)
            .wait();
        assert_eq!(got, Ok(Ok(value)));
    }
    other.join().unwrap();
    drop(never);
}

/// Has threads meet only in selects over the same three channels: each sent value is received once.
// pins: Q7
#[test]
fn selects_on_threads_neither_lose_nor_double_a_value() {
    const EACH: u64 = 2_000;
    for capacity in [0, 1] {
        let channels: Arc<Vec<_>> = Arc::new((0..3).map(|_| channel(capacity)).collect());
        let senders: Vec<_> = (0..2_u64)
            .map(|thread| {
                let channels = Arc::clone(&channels);
                thread::spawn(move || {
                    for number in 0..EACH {
                        let value = thread * EACH + number;
                        let [a, b, c] = [0, 1, 2].map(|at: usize| &channels[at].0);
                        let mut slots = [Some(value); 1];
                        let sent = select()
                            .send_from(a, &mut slots[0], |it| it.is_ok())
                            .send(b, value, |it| it.is_ok())
                            .send(c, value, |it| it.is_ok())
                            .wait();
                        assert_eq!(sent, Ok(true));
                    }
                })
            })
            .collect();
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                let channels = Arc::clone(&channels);
                thread::spawn(move || {
                    let [a, b, c] = [0, 1, 2].map(|at: usize| &channels[at].1);
                    (0..EACH)
                        .map(|_| {
                            let got = select()
                                .recv(c, |it| it)
                                .recv(a, |it| it)
                                .recv(b, |it| it)
                                .wait();
                            got.unwrap().unwrap()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        senders.into_iter().for_each(|it| it.join().unwrap());
        let mut all: Vec<_> = receivers
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..2 * EACH).collect::<Vec<_>>());
    }
}

// pins: Q6
#[test]
fn a_case_that_is_left_out_is_as_if_it_were_not_there() {
    let (a, from_a) = channel(0);
    let (b, from_b) = channel(0);
    let (_, waker) = Bell::new();
    let mut both = select()
        .recv(&from_a, |it| it)
        .when(false)
        .recv(&from_b, |it| it)
        .when(true);
    assert!(poll(&mut both, &waker).is_pending());
    assert!(a.try_send(1).is_err(), "it waits at the other one alone");
    b.try_send(2).unwrap();
    assert_eq!(poll(&mut both, &waker), Poll::Ready(Ok(2)));
    let (full, _kept) = channel(1);
    let mut value = Some(3);
    let sends = select().send_from(&full, &mut value, |it| it).when(false);
    assert_eq!(sends.try_now(), None);
    assert_eq!(value, Some(3));
}

/// Adds a case to a waiting select, which has its places: the select would wait at a new case for
/// ever.
// pins: Q6
#[test]
fn a_case_that_is_added_after_the_first_poll_is_refused() {
    let (sender, receiver) = channel::<u32>(0);
    let waits = || {
        let mut waits = select().recv(&receiver, |it| it.is_ok());
        assert!(now(&mut waits).is_pending());
        waits
    };
    let other = &receiver;
    let late: [&dyn Fn(); 5] = [
        &|| drop(waits().recv(other, |it| it.is_ok())),
        &|| drop(waits().send(&sender, 1, |it| it.is_ok())),
        &|| drop(waits().send_from(&sender, &mut None, |it| it.is_ok())),
        &|| drop(waits().future(std::future::ready(()), |()| true)),
        &|| drop(waits().when(true)),
    ];
    for (number, add) in late.into_iter().enumerate() {
        let refused = catch_unwind(AssertUnwindSafe(add)).unwrap_err();
        let text = refused.downcast_ref::<&str>().unwrap();
        assert!(text.contains("before the first poll"), "{number}: {text}");
        assert!(sender.try_send(2).is_err(), "{number}: a place is left");
    }
}

// pins: Q6
#[test]
fn a_select_that_is_over_takes_no_more_cases() {
    let (sender, receiver) = channel(1);
    let (_kept, never) = channel(0);
    sender.try_send(1).unwrap();
    let mut over = select().recv(&receiver, |it| it);
    assert_eq!(now(&mut over), Poll::Ready(Ok(1)));
    let add = || drop(over.recv(&never, |it| it));
    assert!(catch_unwind(AssertUnwindSafe(add)).is_err());
}
