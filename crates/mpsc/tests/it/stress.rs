//! Many threads, with an exact account of items. `GANGER_STRESS=10` makes each test ten times as
//! long.
#![cfg(not(ganger_loom))]

use crate::support::{Item, LOST, Order, scaled};
use ganger_mpsc::{Batch, Closed, Park, Pushed, Queue, RecvTimeoutError, SendError, channel};
use ganger_sync::Parker;
use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Pushes items `0..count`: three singly, then three together, and so on.
fn push_mixed(
    producer: usize,
    count: usize,
    mut push: impl FnMut(Item),
    mut push_all: impl FnMut(Vec<Item>),
) {
    assert_eq!(count % 6, 0);
    for first in (0..count).step_by(6) {
        (first..first + 3).for_each(|number| push((producer, number)));
        push_all(
            (first + 3..first + 6)
                .map(|number| (producer, number))
                .collect(),
        );
    }
}

#[test]
fn each_producer_s_items_come_in_order() {
    const PRODUCERS: usize = 8;
    let count = scaled(240_000);
    let queue = Queue::new();
    let firsts = AtomicUsize::new(0);
    let mut drains = 0;
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (queue, firsts) = (&queue, &firsts);
            scope.spawn(move || {
                // Ordering: Relaxed, because it is read after the threads have ended.
                let note = |pushed| {
                    firsts.fetch_add(usize::from(pushed == Pushed::First), Ordering::Relaxed)
                };
                push_mixed(
                    producer,
                    count,
                    |item| {
                        note(queue.push(item).unwrap());
                    },
                    |items| {
                        note(queue.push_all(items).unwrap());
                    },
                );
            });
        }
        let mut order = Order::new(PRODUCERS);
        while !order.is_complete(count) {
            let batch = queue.drain();
            if batch.is_empty() {
                thread::yield_now();
                continue;
            }
            drains += 1;
            batch.into_iter().for_each(|item| order.check(item));
        }
    });
    assert!(queue.is_empty());
    // Ordering: Relaxed, because the threads have ended.
    assert_eq!(firsts.load(Ordering::Relaxed), drains);
}

/// The pushed items, by their fate.
#[derive(Default)]
struct Fates {
    drained: Vec<usize>,
    closed: Vec<usize>,
    refused: Vec<usize>,
}

/// Runs pushers, a thread that drains and a thread that closes, all at once, until every push is
/// refused.
fn race_a_close(pushers: Range<usize>, each: usize) -> Fates {
    let queue = Queue::new();
    let start = Barrier::new(pushers.len() + 2);
    let mut fates = Fates::default();
    thread::scope(|scope| {
        let (queue, start) = (&queue, &start);
        let pushers: Vec<_> = pushers
            .map(|pusher| {
                scope.spawn(move || {
                    start.wait();
                    let items = pusher * each..(pusher + 1) * each;
                    let refused = items.filter_map(|item| queue.push(item).err());
                    refused.map(Closed::into_inner).collect::<Vec<_>>()
                })
            })
            .collect();
        let drainer = scope.spawn(move || {
            start.wait();
            let mut drained = Vec::new();
            while !queue.is_finished() {
                drained.extend(queue.drain());
                thread::yield_now();
            }
            drained
        });
        start.wait();
        while queue.is_empty() && !queue.is_closed() {
            if pushers.iter().all(|pusher| pusher.is_finished()) {
                break;
            }
            thread::yield_now();
        }
        fates.closed.extend(queue.close().batch);
        fates.drained = drainer.join().unwrap();
        for pusher in pushers {
            fates.refused.extend(pusher.join().unwrap());
        }
    });
    assert!(queue.is_finished());
    fates
}

#[test]
fn a_racing_close_loses_nothing() {
    const PUSHERS: usize = 3;
    const EACH: usize = 200;
    let mut ends = [0; 3];
    for _ in 0..scaled(2_000) {
        let fates = race_a_close(0..PUSHERS, EACH);
        let mut seen = [0; PUSHERS * EACH];
        let parts = [&fates.drained, &fates.closed, &fates.refused];
        for (part, end) in parts.into_iter().zip(&mut ends) {
            part.iter().for_each(|item| seen[*item] += 1);
            *end += part.len();
        }
        assert!(
            seen.iter().all(|times| *times == 1),
            "lost or doubled: {seen:?}"
        );
        // For each pusher, the drained items come first, then the items returned by the close, then
        // the refused items.
        for pusher in 0..PUSHERS {
            let items = pusher * EACH..(pusher + 1) * EACH;
            let order = parts
                .into_iter()
                .flatten()
                .filter(|item| items.contains(item));
            assert!(order.is_sorted());
        }
    }
    assert!(
        ends.iter().all(|end| *end > 0),
        "a race that never took place: {ends:?}"
    );
}

#[test]
fn there_are_as_many_tokens_as_parks() {
    const PRODUCERS: usize = 4;
    let count = scaled(24_000);
    let (queue, parker) = (Queue::new(), Parker::new());
    let tokens = AtomicUsize::new(0);
    let (mut parks, mut cancelled) = (0, 0);
    thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (queue, parker, tokens) = (&queue, &parker, &tokens);
            scope.spawn(move || {
                let wake = |pushed| {
                    if pushed == Pushed::Unparked {
                        // Ordering: Relaxed, because it is read after the threads have ended.
                        tokens.fetch_add(1, Ordering::Relaxed);
                        parker.unpark();
                    }
                };
                push_mixed(
                    producer,
                    count,
                    |item| {
                        wake(queue.push(item).unwrap());
                        thread::yield_now();
                    },
                    |items| wake(queue.push_all(items).unwrap()),
                );
            });
        }
        let mut order = Order::new(PRODUCERS);
        while !order.is_complete(count) {
            queue.drain().into_iter().for_each(|item| order.check(item));
            if order.is_complete(count) || queue.park() != Park::Parked {
                continue;
            }
            parks += 1;
            let taken_back = parks % 3 == 0 && queue.cancel_park();
            cancelled += usize::from(taken_back);
            if !taken_back {
                assert!(parker.park_timeout(LOST), "a wake-up was lost");
            }
        }
    });
    // Ordering: Relaxed, because the threads have ended.
    assert_eq!(tokens.load(Ordering::Relaxed) + cancelled, parks);
    assert!(!parker.park_timeout(Duration::ZERO), "a token too many");
    assert!(
        parks > cancelled && cancelled > 0,
        "the consumer never slept"
    );
}

#[test]
fn a_channel_delivers_in_order_and_ends() {
    const SENDERS: usize = 8;
    let count = scaled(240_000);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for producer in 0..SENDERS {
            let sender = sender.clone();
            scope.spawn(move || {
                push_mixed(
                    producer,
                    count,
                    |item| sender.send(item).unwrap(),
                    |items| sender.send_all(items).unwrap(),
                );
            });
        }
        drop(sender);
        let mut order = Order::new(SENDERS);
        // Every other receive has a short deadline, so that sleeps end in both ways.
        let mut timeouts = [LOST, Duration::from_micros(5)].into_iter().cycle();
        loop {
            let timeout = timeouts.next().unwrap();
            match receiver.recv_timeout(timeout) {
                Ok(item) => order.check(item),
                Err(RecvTimeoutError::Timeout) => assert_ne!(timeout, LOST, "a wake-up was lost"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        assert!(order.is_complete(count), "the end came too early");
    });
}

#[test]
fn every_ping_has_its_pong() {
    let (ping, pings) = channel::<usize>();
    let (pong, pongs) = channel();
    let count = scaled(10_000);
    thread::scope(|scope| {
        scope.spawn(move || {
            for number in pings {
                pong.send(number).unwrap();
            }
        });
        for number in 0..count {
            ping.send(number).unwrap();
            assert_eq!(pongs.recv_timeout(LOST), Ok(number));
        }
        drop(ping);
        assert_eq!(
            pongs.recv_timeout(LOST),
            Err(RecvTimeoutError::Disconnected)
        );
    });
}

/// Counts the live values of its type.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(alive: &'a AtomicUsize) -> Self {
        // Ordering: Relaxed, because it is read after the threads have ended.
        alive.fetch_add(1, Ordering::Relaxed);
        Self(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed, because it is read after the threads have ended.
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_receiver_that_goes_leaves_nothing_behind() {
    let alive = AtomicUsize::new(0);
    for round in 0..scaled(300) {
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for _ in 0..3 {
                let (sender, alive) = (sender.clone(), &alive);
                scope.spawn(move || {
                    while sender.send(Counted::new(alive)).is_ok() {
                        thread::yield_now();
                    }
                    let refused = sender.send_all((0..3).map(|_| Counted::new(alive)));
                    assert_eq!(refused.map_err(|SendError(batch)| batch.len()), Err(3));
                });
            }
            for _ in 0..round % 50 {
                receiver.recv_timeout(LOST).unwrap();
            }
            drop(receiver);
        });
        drop(sender);
        // Ordering: Relaxed, because the threads have ended.
        assert_eq!(alive.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_million_items_are_dropped_on_a_small_stack() {
    const ITEMS: usize = 1_000_000;
    let alive = &AtomicUsize::new(0);
    let fill = || (0..ITEMS).map(|_| Counted::new(alive));
    // Ordering: Relaxed, because it is read on the thread that drops.
    let alive_now = || alive.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(64 * 1024);
        let thread = small.spawn_scoped(scope, || {
            let queue = Queue::new();
            for item in fill() {
                let _ = queue.push(item).unwrap();
            }
            assert_eq!(alive_now(), ITEMS);
            drop(queue);
            assert_eq!(alive_now(), 0);

            drop(fill().collect::<Batch<_>>());
            assert_eq!(alive_now(), 0);

            let (sender, receiver) = channel();
            sender.send_all(fill()).unwrap();
            drop(receiver.recv().unwrap());
            sender.send_all(fill()).unwrap();
            assert_eq!(alive_now(), 2 * ITEMS - 1);
            drop(receiver);
            assert_eq!(alive_now(), 0);
        });
        thread.unwrap().join().unwrap();
    });
}
