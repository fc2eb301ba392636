//! Watch and broadcast: the view of each of many receivers.

use crate::support::{Bell, now, poll};
use ganger_channel::{BroadcastError, RecvError, broadcast, watch};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

// pins: Q9
#[test]
fn a_watcher_sees_the_latest_value_and_is_woken_for_a_newer_one() {
    let (publisher, mut watcher) = watch(0);
    assert!(!watcher.has_changed() && *watcher.latest() == 0);
    let (bell, waker) = Bell::new();
    let mut changed = watcher.changed();
    assert!(poll(&mut changed, &waker).is_pending());
    assert_eq!(*publisher.send(1), 0);
    publisher.send(2);
    assert_eq!(bell.rung(), 1);
    assert_eq!(poll(&mut changed, &waker), Poll::Ready(Ok(())));
    drop(changed);
    assert!(!watcher.has_changed() && *watcher.latest() == 2);
    // Without a look, a watcher has missed no value, and a new watcher has seen all.
    let mut other = watcher.clone();
    let mut new = publisher.subscribe();
    publisher.send(3);
    drop(publisher);
    for watcher in [&mut watcher, &mut other, &mut new] {
        assert_eq!(now(&mut watcher.changed()), Poll::Ready(Ok(())));
        assert_eq!(*watcher.latest(), 3);
        assert_eq!(watcher.changed_blocking(), Err(RecvError::Closed));
    }
}

// pins: Q9
#[test]
fn a_watcher_that_gives_up_leaves_no_place() {
    let (publisher, mut watcher) = watch(0);
    let (bell, waker) = Bell::new();
    let mut changed = watcher.changed();
    assert!(poll(&mut changed, &waker).is_pending());
    drop(changed);
    assert_eq!(
        watcher.changed_timeout(Duration::from_millis(1)),
        Err(RecvError::Timeout)
    );
    publisher.send(1);
    assert_eq!(bell.rung(), 0);
}

// pins: Q9
#[test]
fn threads_watch_until_the_last_value() {
    let (publisher, watcher) = watch(0);
    let watchers: Vec<_> = (0..3)
        .map(|_| {
            let mut watcher = watcher.clone();
            thread::spawn(move || {
                let mut last = 0;
                while watcher.changed_blocking().is_ok() {
                    let value = *watcher.latest();
                    assert!(value >= last, "it goes back");
                    last = value;
                }
                last
            })
        })
        .collect();
    (1..=1_000).for_each(|value| drop(publisher.send(value)));
    drop(publisher);
    assert!(watchers.into_iter().all(|it| it.join().unwrap() == 1_000));
}

// pins: Q10
#[test]
fn every_subscriber_gets_each_value_or_the_number_of_those_that_it_lost() {
    let (broadcaster, mut a) = broadcast(2);
    broadcaster.send(1);
    let mut late = broadcaster.subscribe();
    let mut b = a.clone();
    assert_eq!(
        (a.try_recv(), a.try_recv()),
        (Ok(1), Err(BroadcastError::Empty))
    );
    let (bell, waker) = Bell::new();
    let mut recv = a.recv();
    assert!(poll(&mut recv, &waker).is_pending());
    (2..=5).for_each(|value| broadcaster.send(value));
    assert_eq!(bell.rung(), 1);
    assert_eq!(
        poll(&mut recv, &waker),
        Poll::Ready(Err(BroadcastError::Lagged(2)))
    );
    drop(recv);
    drop(broadcaster);
    assert_eq!(
        (late.try_recv(), b.try_recv()),
        (
            Err(BroadcastError::Lagged(2)),
            Err(BroadcastError::Lagged(3)),
        )
    );
    for subscriber in [&mut a, &mut b, &mut late] {
        assert_eq!(
            [subscriber.try_recv(), subscriber.try_recv()],
            [Ok(4), Ok(5)]
        );
        assert_eq!(subscriber.recv_blocking(), Err(BroadcastError::Closed));
    }
}

// pins: Q10
#[test]
fn threads_get_all_values_in_order_but_for_those_that_they_are_told_of() {
    const VALUES: u64 = 5_000;
    let (broadcaster, subscriber) = broadcast(16);
    let subscribers: Vec<_> = (0..3)
        .map(|_| {
            let mut subscriber = subscriber.clone();
            thread::spawn(move || {
                let mut next = 0;
                loop {
                    match subscriber.recv_timeout(Duration::from_secs(600)) {
                        Ok(value) => assert_eq!(value, next),
                        Err(BroadcastError::Lagged(lost)) => {
                            next += lost;
                            continue;
                        }
                        Err(error) => return (next, error),
                    }
                    next += 1;
                }
            })
        })
        .collect();
    (0..VALUES).for_each(|value| broadcaster.send(value));
    drop(broadcaster);
    for subscriber in subscribers {
        assert_eq!(subscriber.join().unwrap(), (VALUES, BroadcastError::Closed));
    }
}

#[derive(Debug, Clone)]
enum Op {
    Send,
    Recv(prop::sample::Index),
    Clone(prop::sample::Index),
    Subscribe,
    Drop(prop::sample::Index),
}

fn op() -> impl Strategy<Value = Op> {
    let any = any::<prop::sample::Index>;
    prop_oneof![
        6 => Just(Op::Send),
        8 => any().prop_map(Op::Recv),
        1 => any().prop_map(Op::Clone),
        1 => Just(Op::Subscribe),
        2 => any().prop_map(Op::Drop),
    ]
}

proptest! {
    /// Compares with a list of all values ever sent, and each subscriber's next index.
    // pins: Q10
    #[test]
    fn a_subscriber_gets_what_it_would_if_no_value_went(
        capacity in 1..5_usize,
        ops in vec(op(), 0..200),
    ) {
        let (broadcaster, first) = broadcast(capacity);
        let mut subscribers = vec![(first, 0)];
        let mut sent: Vec<Arc<usize>> = Vec::new();
        for op in ops {
            match op {
                Op::Send => {
                    sent.push(Arc::new(sent.len()));
                    broadcaster.send(Arc::clone(&sent[sent.len() - 1]));
                }
                Op::Subscribe => subscribers.push((broadcaster.subscribe(), sent.len())),
                Op::Recv(at) if !subscribers.is_empty() => {
                    let at = at.index(subscribers.len());
                    let (subscriber, next) = &mut subscribers[at];
                    let oldest = sent.len().saturating_sub(capacity);
                    let expected = if *next < oldest {
                        let lost = oldest - *next;
                        *next = oldest;
                        Err(BroadcastError::Lagged(lost as u64))
                    } else if let Some(value) = sent.get(*next) {
                        *next += 1;
                        Ok(Arc::clone(value))
                    } else {
                        Err(BroadcastError::Empty)
                    };
                    prop_assert_eq!(subscriber.try_recv(), expected);
                }
                Op::Clone(at) if !subscribers.is_empty() => {
                    let (subscriber, next) = &subscribers[at.index(subscribers.len())];
                    let clone = (subscriber.clone(), *next);
                    subscribers.push(clone);
                }
                Op::Drop(at) if !subscribers.is_empty() => {
                    drop(subscribers.swap_remove(at.index(subscribers.len())));
                }
                _ => {}
            }
            // A value is kept exactly as long as a subscriber may get it.
            let oldest = sent.len().saturating_sub(capacity);
            let needed = subscribers.iter().map(|it| it.1.max(oldest)).min();
            let needed = needed.unwrap_or(sent.len());
            for (number, value) in sent.iter().enumerate() {
                prop_assert_eq!(Arc::strong_count(value) == 2, number >= needed);
            }
        }
    }
}
