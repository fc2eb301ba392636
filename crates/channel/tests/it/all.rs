//! Watch and broadcast: what each of many sees.

use crate::support::{Bell, now, poll};
use ganger_channel::{BroadcastError, RecvError, broadcast, watch};
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
    // One that has not looked has missed nothing, and a new one has seen all.
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
