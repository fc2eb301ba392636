//! Models of closing against pushing and draining: each item is drained, returned by the close, or
//! returned to its pusher. A closed queue stays closed.

use crate::outcomes::Outcomes;
use ganger_mpsc::{Closed, Park, Queue, Single};
use ganger_sync::cell::UnsafeCell;
use ganger_sync::sync::Arc;
use ganger_sync::thread::JoinHandle;
use ganger_sync::{model, thread};

/// Pushes `items` one by one. Returns the refused items.
fn spawn_pusher(queue: &Arc<Queue<u32>>, items: std::ops::Range<u32>) -> JoinHandle<Vec<u32>> {
    let queue = Arc::clone(queue);
    thread::spawn(move || {
        let mut refused = Vec::new();
        for item in items {
            match queue.push(item) {
                Ok(_) => assert!(refused.is_empty(), "a closed queue opened again"),
                Err(Closed(item)) => refused.push(item),
            }
        }
        refused
    })
}

#[test]
fn close_against_a_push_and_a_drain() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pusher = spawn_pusher(&queue, 0..3);
        let closer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let closing = queue.close();
                assert!(!closing.parked);
                closing.batch
            })
        };
        thread::yield_now();
        let mut items: Vec<u32> = queue.drain().into_iter().collect();
        let rest = closer.join().unwrap();
        assert!(queue.is_finished());
        assert!(queue.drain().is_empty());
        seen.note((items.len(), rest.len()));
        items.extend(rest);
        items.extend(pusher.join().unwrap());
        assert_eq!(items, [0, 1, 2], "drained, then closed, then refused");
        assert!(queue.is_finished());
    });
    outcomes
        .check((0..=3).flat_map(|drained| (0..=3 - drained).map(move |second| (drained, second))));
}

#[test]
fn close_against_two_pushers() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pushers = [spawn_pusher(&queue, 0..2), spawn_pusher(&queue, 2..4)];
        let mut items: Vec<u32> = queue.close().batch.into_iter().collect();
        seen.note(items.len());
        for pusher in pushers {
            items.extend(pusher.join().unwrap());
        }
        assert!(queue.close().batch.is_empty());
        items.sort_unstable();
        assert_eq!(items, [0, 1, 2, 3]);
    });
    outcomes.check(0..=4);
}

#[test]
fn close_against_a_group() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let single = spawn_pusher(&queue, 9..10);
        let group = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push_all(0..3).err().map(Closed::into_inner))
        };
        let closed: Vec<u32> = queue.close().batch.into_iter().collect();
        let single = single.join().unwrap();
        let group: Vec<u32> = group.join().unwrap().into_iter().flatten().collect();
        assert!([0, 3].contains(&group.len()), "a group was torn apart");
        assert_eq!(closed.len() + single.len() + group.len(), 4);
        seen.note((closed.len(), group.len()));
        for part in [&group, &closed] {
            let part: Vec<_> = part.iter().filter(|item| **item != 9).collect();
            assert!(part.is_sorted());
        }
    });
    outcomes.check([(0, 3), (1, 3), (3, 0), (4, 0)]);
}

#[test]
fn close_against_an_item_in_its_node() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let other = spawn_pusher(&queue, 9..10);
        let single = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let pushed = queue.push_single(Single::of(0));
                // The item comes back alone, without its links.
                let refused = pushed.err().map(Closed::into_inner);
                let batches = refused.into_iter().map(Single::into_batch);
                batches.flatten().collect::<Vec<u32>>()
            })
        };
        let closed: Vec<u32> = queue.close().batch.into_iter().collect();
        let (other, single) = (other.join().unwrap(), single.join().unwrap());
        assert!(single.is_empty() || single == [0], "{single:?}");
        assert_eq!(closed.len() + other.len() + single.len(), 2);
        seen.note((closed.len(), single.len()));
    });
    outcomes.check([(0, 1), (1, 0), (1, 1), (2, 0)]);
}

#[test]
fn seal_against_a_push_and_a_drain() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pusher = spawn_pusher(&queue, 0..3);
        let sealer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let _nobody_parks = queue.seal();
                assert!(queue.is_closed());
            })
        };
        thread::yield_now();
        let mut items: Vec<u32> = queue.drain().into_iter().collect();
        sealer.join().unwrap();
        let drained = items.len();
        items.extend(queue.drain());
        seen.note((drained, items.len() - drained));
        assert!(queue.is_finished());
        items.extend(pusher.join().unwrap());
        assert_eq!(items, [0, 1, 2], "drained, then refused");
    });
    outcomes
        .check((0..=3).flat_map(|drained| (0..=3 - drained).map(move |second| (drained, second))));
}

/// A queue, and the reason why it is closed.
struct Ending {
    queue: Queue<u32>,
    reason: UnsafeCell<u32>,
}

// SAFETY: the reason is written before the queue is closed, and read by threads that find the queue
// closed; the model checks this order.
unsafe impl Sync for Ending {}

/// Checks that every way of finding a queue closed sees the writes before this way of closing.
fn check_ending(close: fn(&Queue<u32>)) {
    let ways_to_find: [fn(&Queue<u32>) -> bool; 4] = [
        |queue| queue.is_closed(),
        |queue| queue.is_finished(),
        |queue| queue.park() == Park::Closed,
        |queue| queue.push(1).is_err(),
    ];
    for found in ways_to_find {
        let outcomes = Outcomes::new();
        let seen = outcomes.clone();
        model::check(4, move || {
            let ending = Arc::new(Ending {
                queue: Queue::new(),
                reason: UnsafeCell::new(0),
            });
            let closer = {
                let ending = Arc::clone(&ending);
                thread::spawn(move || {
                    // SAFETY: other threads read it after the queue is closed.
                    ending.reason.with_mut(|reason| unsafe { *reason = 7 });
                    close(&ending.queue);
                })
            };
            thread::yield_now();
            let found = found(&ending.queue);
            if found {
                // SAFETY: the queue is closed, and the reason was written before the close.
                assert_eq!(ending.reason.with(|reason| unsafe { *reason }), 7);
            }
            seen.note(found);
            closer.join().unwrap();
        });
        outcomes.check([false, true]);
    }
}

#[test]
fn a_close_happens_before_what_finds_it() {
    check_ending(|queue| {
        let _ = queue.close();
    });
}

#[test]
fn a_seal_happens_before_what_finds_it() {
    check_ending(|queue| {
        let _ = queue.seal();
    });
}
