//! Destructors and iterators that panic: every item is dropped once.
#![cfg(not(ganger_loom))]

use crate::support::add_panic_hook;
use ganger_mpsc::{Batch, Queue, channel};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Once;

const ITEMS: usize = 100;

/// What a panic in this file carries.
struct Bang;

/// Counts its drops. The bad one of them panics.
struct Item<'a> {
    drops: &'a Cell<usize>,
    panics: bool,
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        self.drops.set(self.drops.get() + 1);
        if self.panics {
            panic_any(Bang);
        }
    }
}

/// Gives `body` items, and checks that it drops each of them once. The item numbered `bad`, if
/// there is one, panics when it is dropped. Returns whether `body` panicked.
fn drops_all(bad: usize, body: impl FnOnce(&mut dyn Iterator<Item = Item<'_>>)) -> bool {
    let drops = Cell::new(0);
    let made = Cell::new(0);
    let mut items = (0..ITEMS).map(|number| {
        made.set(number + 1);
        Item {
            drops: &drops,
            panics: number == bad,
        }
    });
    let result = catch_unwind(AssertUnwindSafe(|| body(&mut items)));
    assert_eq!(drops.get(), made.get(), "the bad item was {bad}");
    match result {
        Ok(()) => false,
        Err(panic) => {
            assert!(panic.is::<Bang>(), "an assertion failed");
            true
        }
    }
}

/// Keeps the panics of these tests, and only these, out of the output.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        add_panic_hook(|info, report| {
            if !info.payload().is::<Bang>() {
                report(info);
            }
        });
    });
}

/// Runs the test for the first item, some in between, the last, and none.
fn check(body: impl Fn(&mut dyn Iterator<Item = Item<'_>>)) {
    keep_quiet();
    for bad in [0, 1, ITEMS / 2, ITEMS - 1] {
        assert!(drops_all(bad, &body), "a panic was swallowed");
    }
    assert!(!drops_all(ITEMS, &body));
}

#[test]
fn in_a_batch() {
    check(|items| drop(items.collect::<Batch<_>>()));
}

#[test]
fn in_a_batch_that_is_being_read() {
    check(|items| {
        let batch: Batch<_> = items.collect();
        for item in batch {
            drop(item);
        }
    });
}

#[test]
fn in_a_queue() {
    check(|items| {
        let queue = Queue::new();
        for item in items {
            assert!(queue.push(item).is_ok());
        }
        drop(queue);
    });
}

#[test]
fn in_a_queue_that_is_sealed() {
    check(|items| {
        let queue = Queue::new();
        assert!(queue.push_all(items).is_ok());
        let _nobody_parks = queue.seal();
        drop(queue);
    });
}

#[test]
fn in_a_receiver() {
    check(|items| {
        let (sender, receiver) = channel();
        assert!(sender.send_all((&mut *items).take(ITEMS / 3)).is_ok());
        let first = receiver.recv();
        assert!(sender.send_all(items).is_ok());
        drop(receiver);
        drop(first);
    });
}

#[test]
fn in_what_comes_back() {
    check(|items| {
        let queue = Queue::new();
        let _nothing = queue.close();
        drop(queue.push_all(items));
    });
}

#[test]
fn in_the_iterator_that_is_pushed() {
    keep_quiet();
    let queue = Queue::new();
    let panicked = drops_all(ITEMS, |items| {
        let queue = Queue::new();
        let _ = queue.push_all(items.enumerate().map(|(number, item)| {
            if number == ITEMS / 2 {
                panic_any(Bang);
            }
            item
        }));
    });
    assert!(panicked);
    let _ = queue.push(1);
    let half = catch_unwind(|| {
        let _ =
            queue.push_all((2..).map(|number| if number < 5 { number } else { panic_any(Bang) }));
    });
    assert!(half.is_err());
    assert_eq!(
        queue.drain().into_iter().collect::<Vec<_>>(),
        [1],
        "all of them or none"
    );
}
