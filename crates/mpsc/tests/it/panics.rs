//! Destructors and iterators that panic: every item is dropped once.
#![cfg(not(ganger_loom))]

use crate::support::add_panic_hook;
use ganger_mpsc::{Batch, Queue, channel};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Once;

const ITEMS: usize = 100;

/// The payload of panics in this file.
struct Bang;

/// Counts its drops. The bad item panics.
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

/// Passes items to `body`, and checks that it drops each of them once. The item number `bad`, if it
/// exists, panics when dropped. Returns whether `body` panicked.
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

/// Wakers of sends that wait for room.
#[cfg(feature = "async")]
mod wakers {
    use super::{Bang, keep_quiet};
    use crate::polling::Task;
    use ganger_mpsc::{BoundedSender, Receiver, SendFuture, TrySendError, bounded};
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};

    /// Panics when woken, or when dropped.
    struct Bad {
        when_dropped: bool,
    }

    impl Wake for Bad {
        fn wake(self: Arc<Self>) {
            if !self.when_dropped {
                panic_any(Bang);
            }
        }
    }

    impl Drop for Bad {
        fn drop(&mut self) {
            if self.when_dropped {
                panic_any(Bang);
            }
        }
    }

    fn bad(when_dropped: bool) -> Waker {
        Arc::new(Bad { when_dropped }).into()
    }

    fn full(capacity: u8) -> (BoundedSender<u8>, Receiver<u8>) {
        keep_quiet();
        let (sender, receiver) = bounded(capacity.into());
        (0..capacity).for_each(|item| sender.try_send(item).unwrap());
        (sender, receiver)
    }

    fn is_sent(future: &mut SendFuture<'_, u8>, waker: &Waker) -> bool {
        match Pin::new(future).poll(&mut Context::from_waker(waker)) {
            Poll::Pending => false,
            Poll::Ready(sent) => sent.is_ok(),
        }
    }

    #[track_caller]
    fn bangs(body: impl FnOnce()) {
        let panic = catch_unwind(AssertUnwindSafe(body)).expect_err("a panic was swallowed");
        assert!(panic.is::<Bang>(), "an assertion failed");
    }

    #[test]
    fn at_the_end_all_others_are_woken() {
        let (sender, receiver) = full(1);
        let tasks = [(); 2].map(|()| Task::new());
        let mut futures = [1, 2, 3].map(|item| sender.send_async(item));
        let wakers = [tasks[0].waker(), bad(false), tasks[1].waker()];
        for (future, waker) in futures.iter_mut().zip(&wakers) {
            assert!(!is_sent(future, waker));
        }
        bangs(|| drop(receiver));
        assert_eq!(tasks.map(|task| task.wakes()), [1, 1]);
    }

    /// Gives a lot of a single place. The first waiter wakes the second, whose waker panics.
    #[test]
    fn of_the_next_no_place_is_lost() {
        let (sender, receiver) = full(2);
        let task = Task::new();
        let mut first = sender.send_async(2);
        let mut second = sender.send_async(3);
        assert!(!is_sent(&mut first, &task.waker()));
        assert!(!is_sent(&mut second, &bad(false)));
        assert!(receiver.drain().into_iter().eq(0..2));
        assert_eq!(task.wakes(), 1);
        bangs(|| _ = is_sent(&mut first, &task.waker()));
        assert_eq!(receiver.try_recv(), Ok(2), "a place was lost");
        drop((first, second));
        (0..2).for_each(|item| sender.try_send(item).unwrap());
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    }

    /// Checks the same with a waiting thread: its item is in before the panic.
    #[test]
    fn of_a_thread_no_place_is_lost() {
        let (sender, receiver) = full(2);
        let mut second = None;
        let sent = std::thread::scope(|scope| {
            let first = scope.spawn(|| sender.send(2));
            // A waiting task would otherwise come before the thread in the line.
            while !format!("{sender:?}").contains("waiting: 1") {
                std::thread::yield_now();
            }
            let second = second.insert(sender.send_async(3));
            assert!(!is_sent(second, &bad(false)));
            assert!(receiver.drain().into_iter().eq(0..2));
            first.join()
        });
        assert!(sent.expect_err("a panic was swallowed").is::<Bang>());
        assert_eq!(receiver.try_recv(), Ok(2), "a place was lost");
        drop(second);
        (0..2).for_each(|item| sender.try_send(item).unwrap());
        assert_eq!(sender.try_send(2), Err(TrySendError::Full(2)));
    }

    /// Panics in a replaced waker. The send keeps its ticket, and passes its turn on to the next.
    #[test]
    fn of_the_past_no_turn_is_lost() {
        let (sender, receiver) = full(1);
        let tasks = [(); 2].map(|()| Task::new());
        let mut first = sender.send_async(1);
        let mut second = sender.send_async(2);
        assert!(!is_sent(&mut first, &bad(true)));
        assert!(!is_sent(&mut second, &tasks[1].waker()));
        bangs(|| _ = is_sent(&mut first, &tasks[0].waker()));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(tasks.each_ref().map(|task| task.wakes()), [1, 0]);
        drop(first);
        assert_eq!(tasks.each_ref().map(|task| task.wakes()), [1, 1]);
        assert!(is_sent(&mut second, &tasks[1].waker()));
    }

    /// Panics in the send's own waker, which is dropped with the send. The turn passes to the next.
    #[test]
    fn of_one_that_gives_up_no_turn_is_lost() {
        let (sender, receiver) = full(1);
        let task = Task::new();
        let first = sender.send_async(1);
        let mut second = sender.send_async(2);
        let mut first = Some(first);
        assert!(!is_sent(first.as_mut().unwrap(), &bad(true)));
        assert!(!is_sent(&mut second, &task.waker()));
        bangs(|| drop(first.take()));
        assert_eq!(receiver.recv(), Ok(0));
        assert_eq!(task.wakes(), 1);
        assert!(is_sent(&mut second, &task.waker()));
    }
}
