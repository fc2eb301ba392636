//! Models of pushing against draining: every item comes out once, in the order of its producer, and
//! between two drains exactly one push is the first.

use crate::outcomes::Outcomes;
use ganger_mpsc::{Pushed, Queue};
use ganger_sync::sync::Arc;
use ganger_sync::{model, thread};

/// The producer, and the number of its push.
type Item = (usize, usize);

/// Panics unless every producer's items come in order. Returns the number of items.
fn check_order(items: &[Item]) -> usize {
    let mut next = [0; 3];
    for &(producer, number) in items {
        assert_eq!(number, next[producer], "out of order in {items:?}");
        next[producer] += 1;
    }
    items.len()
}

#[test]
fn two_pushers_against_a_drain() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pushers: Vec<_> = (0..2)
            .map(|producer| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let pushes = (0..2).map(|number| queue.push((producer, number)).unwrap());
                    pushes.filter(|pushed| *pushed == Pushed::First).count()
                })
            })
            .collect();

        let mut items: Vec<Item> = Vec::new();
        let mut drains = 0;
        let mut drain = || {
            let batch = queue.drain();
            drains += usize::from(!batch.is_empty());
            let len = batch.len();
            items.extend(batch);
            len
        };
        thread::yield_now();
        seen.note((drain(), drain() > 0));
        let firsts: usize = pushers
            .into_iter()
            .map(|pusher| pusher.join().unwrap())
            .sum();
        drain();

        assert_eq!(check_order(&items), 4);
        assert_eq!(
            firsts, drains,
            "one first push a drain that found something"
        );
        assert!(queue.is_empty());
    });
    outcomes.check(
        (0..=4)
            .flat_map(|first| [(first, false), (first, true)])
            .filter(|seen| *seen != (4, true)),
    );
}

#[test]
fn a_group_against_a_push_and_a_drain() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pushers = [
            {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let _ = queue.push_all((0..3).map(|number| (0, number))).unwrap();
                })
            },
            {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let _ = queue.push((1, 0)).unwrap();
                })
            },
        ];
        thread::yield_now();
        let mut items: Vec<Item> = queue.drain().into_iter().collect();
        seen.note(items.len());
        for pusher in pushers {
            pusher.join().unwrap();
        }
        items.extend(queue.drain());

        assert_eq!(check_order(&items), 4);
        let other = items.iter().position(|item| item.0 == 1).unwrap();
        assert!(
            other == 0 || other == 3,
            "a group was torn apart: {items:?}"
        );
    });
    outcomes.check([0, 1, 3, 4]);
}

#[test]
fn two_drains_against_a_pusher() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let queue = Arc::new(Queue::new());
        let pusher = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                for number in 0..3 {
                    let _ = queue.push((0, number)).unwrap();
                }
            })
        };
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                thread::yield_now();
                queue.drain().into_iter().collect::<Vec<_>>()
            })
        };
        thread::yield_now();
        let mut items: Vec<Item> = queue.drain().into_iter().collect();
        assert!(items.is_sorted());
        pusher.join().unwrap();
        let others = other.join().unwrap();
        assert!(others.is_sorted());
        seen.note((items.len(), others.len()));
        items.extend(others);
        items.extend(queue.drain());
        items.sort_unstable();
        assert_eq!(check_order(&items), 3);
    });
    outcomes.check((0..=3).flat_map(|mine| (0..=3 - mine).map(move |others| (mine, others))));
}

#[test]
fn what_is_left_is_dropped_with_the_queue() {
    let outcomes = Outcomes::new();
    let seen = outcomes.clone();
    model::check(4, move || {
        let counter = Arc::new(());
        let queue = Arc::new(Queue::new());
        let pusher = {
            let (queue, counter) = (Arc::clone(&queue), Arc::clone(&counter));
            thread::spawn(move || {
                let _ = queue.push(Arc::clone(&counter)).unwrap();
                let _ = queue.push(counter).unwrap();
            })
        };
        thread::yield_now();
        seen.note(queue.drain().len());
        drop(queue);
        pusher.join().unwrap();
        assert_eq!(Arc::strong_count(&counter), 1);
    });
    outcomes.check(0..=2);
}
