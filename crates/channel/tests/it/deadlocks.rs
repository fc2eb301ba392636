//! Waits at channels, in a program with a watch for deadlocks.

use crate::support::now;
use ganger_channel::{broadcast, channel, select, watch};
use ganger_wait::watch::{Watching, begin};
use std::task::Poll;
use std::time::Duration;

/// Returns the kinds of this thread's waits.
fn own_waits(watching: &Watching) -> Vec<&'static str> {
    let waits = watching.own_waits();
    waits.iter().map(|it| it.thing.kind).collect()
}

// pins: K9
#[test]
fn waits_at_channels_are_known_until_they_are_over() {
    let watching = begin(|| None, || Duration::ZERO);
    let (sender, receiver) = channel(0);
    let mut recv = receiver.recv();
    assert!(now(&mut recv).is_pending());
    assert_eq!(own_waits(&watching), ["sender of the channel"]);
    sender.try_send(1).unwrap();
    assert_eq!(now(&mut recv), Poll::Ready(Ok(1)));
    assert!(
        own_waits(&watching).is_empty(),
        "it is over, and still there"
    );
    let mut send = sender.send(2);
    assert!(now(&mut send).is_pending());
    assert_eq!(own_waits(&watching), ["receiver of the channel"]);
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(now(&mut send), Poll::Ready(Ok(())));
    assert!(own_waits(&watching).is_empty());
    let mut given_up = receiver.recv();
    assert!(now(&mut given_up).is_pending());
    drop(given_up);
    assert!(own_waits(&watching).is_empty());
}

// pins: K9
#[test]
fn a_select_waits_for_each_of_its_cases_until_one_is_chosen() {
    let watching = begin(|| None, || Duration::ZERO);
    let (a, from_a) = channel(0);
    let (b, from_b) = channel(0);
    let mut select = select().recv(&from_a, |_| "a").send(&b, 1, |_| "b");
    assert!(now(&mut select).is_pending());
    assert!(now(&mut select).is_pending(), "it looks again");
    let mut waits = own_waits(&watching);
    waits.sort_unstable();
    assert_eq!(waits, ["receiver of the channel", "sender of the channel"]);
    assert_eq!(from_b.try_recv(), Ok(1));
    assert_eq!(now(&mut select), Poll::Ready("b"));
    assert!(own_waits(&watching).is_empty());
    drop::<ganger_channel::Sender<u32>>(a);
}

// pins: K9
#[test]
fn watchers_and_subscribers_wait() {
    let watching = begin(|| None, || Duration::ZERO);
    let (publisher, mut watcher) = watch(1);
    let mut changed = watcher.changed();
    assert!(now(&mut changed).is_pending() && now(&mut changed).is_pending());
    assert_eq!(own_waits(&watching), ["publisher of the watch"]);
    publisher.send(2);
    assert_eq!(now(&mut changed), Poll::Ready(Ok(())));
    assert!(own_waits(&watching).is_empty());
    let (broadcaster, mut subscriber) = broadcast(1);
    let mut recv = subscriber.recv();
    assert!(now(&mut recv).is_pending());
    assert_eq!(own_waits(&watching), ["broadcaster"]);
    drop(recv);
    assert!(own_waits(&watching).is_empty());
    broadcaster.send(1);
}
